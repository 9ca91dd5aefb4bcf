import { expect } from 'chai';
import type { ReceivedResponse } from '../../support/api-client.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { Signal } from '../../support/signals.ts';
import { plainTask } from '../plain-task.ts';

const MIB = 1024 * 1024;

interface Page {
  readonly items: readonly { readonly id: string; readonly payload: object }[];
  readonly total: number;
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

describe('a large list', function () {
  this.timeout(60_000);
  const api = useRunningApi();
  const get = (path: string) => api().admin.client.get(path);
  const bytesOf = ({ text }: ReceivedResponse) => Buffer.byteLength(text);
  const payloadOf = (characters: number) => ({
    pipeline: [{ uses: 'echo', with: { text: 'x'.repeat(characters) } }],
  });
  const makeTask = async (characters: number, tag: string): Promise<string> => {
    const { admin } = api();
    const body = { ...plainTask(admin.id), payload: payloadOf(characters), tags: [tag] };
    const answer = await admin.client.post('/tasks', body);
    expect(answer.status, answer.text).to.equal(201);
    return answer.textAt('id');
  };
  const publish = async (topic: string, text: string): Promise<void> => {
    const { admin } = api();
    const body = { topic, payload: { text }, source_agent_id: admin.id };
    expect((await admin.client.post('/events', body)).status).to.equal(202);
  };

  it('omits payloads over 64 KiB, which a single task shows', async () => {
    const large = await makeTask(70_000, 'cut');
    const small = await makeTask(60_000, 'cut');
    const { items } = (await get('/tasks?tag=cut')).json as unknown as Page;
    expect(items.map(({ id, payload }) => [id, payload])).to.deep.equal([
      [small, payloadOf(60_000)],
      [
        large,
        { truncated: true, size_bytes: Buffer.byteLength(JSON.stringify(payloadOf(70_000))) },
      ],
    ]);
    const whole = await get(`/tasks/${large}`);
    expect(whole.at('payload')).to.deep.equal(payloadOf(70_000));
    expect(items.map((item) => (item as unknown as { warnings: unknown }).warnings)).to.deep.equal([
      [],
      [],
    ]);
  });

  it('ends a page before 4 MiB, and continues there with the cursor or the offset', async () => {
    const made: string[] = [];
    for (let count = 0; count < 90; count += 1) made.unshift(await makeTask(60_000, 'many'));
    const byCursor: string[] = [];
    let query = '';
    for (;;) {
      const answer = await get(`/tasks?tag=many&limit=200${query}`);
      expect(bytesOf(answer)).to.be.at.most(4 * MIB);
      const page = answer.json as unknown as Page;
      expect(page.total).to.equal(90);
      expect(page.has_more).to.equal(page.next_cursor !== null);
      byCursor.push(...page.items.map(({ id }) => id));
      if (page.next_cursor === null) break;
      query = `&cursor=${page.next_cursor}`;
    }
    expect(byCursor).to.deep.equal(made);
    const byOffset: string[] = [];
    for (let more = true; more;) {
      const answer = await get(`/tasks?tag=many&limit=200&offset=${byOffset.length}`);
      const page = answer.json as unknown as Page;
      byOffset.push(...page.items.map(({ id }) => id));
      more = page.has_more;
    }
    expect(byOffset).to.deep.equal(made);
  });

  it('of publications ends before 4 MiB, says so, and omits large payloads', async () => {
    await publish('large', 'x'.repeat(70_000));
    for (let count = 0; count < 80; count += 1) await publish('large', 'x'.repeat(60_000));
    const all = await get('/stream/recent?topic=large&count=1000');
    expect(bytesOf(all)).to.be.within(3 * MIB, 4 * MIB);
    expect(all.at('truncated')).to.equal(true);
    expect(all.at('total_events')).to.equal((all.at('events') as unknown[]).length);
    const few = await get('/stream/recent?topic=large&count=5');
    expect([few.at('total_events'), few.at('truncated')]).to.deep.equal([5, false]);
    await publish('other', 'x'.repeat(70_000));
    const [newest] = (await get('/stream/recent?topic=other')).at('events') as {
      payload: unknown;
    }[];
    expect(newest?.payload).to.deep.equal({ truncated: true, size_bytes: 70_011 });
  });

  it("of a stream's events ends before 4 MiB, and shows each completely", async () => {
    for (let count = 0; count < 30; count += 1) await publish('stream', 'x'.repeat(200_000));
    const revisions: number[] = [];
    for (let from: number | null = 0; from !== null;) {
      const answer = await get(`/streams/topic-stream?limit=200&from=${from}`);
      expect(bytesOf(answer)).to.be.at.most(4 * MIB);
      const items = answer.at('items') as {
        revision: number;
        data: { payload: { text: string } };
      }[];
      for (const { revision, data } of items) {
        expect(data.payload.text.length).to.equal(200_000);
        revisions.push(revision);
      }
      from = answer.at('next_from') as number | null;
    }
    expect(revisions).to.deep.equal(Array.from({ length: 30 }, (_, revision) => revision));
  });

  it('of changes omits values over 64 KiB', async () => {
    const id = await makeTask(70_000, 'changed');
    const [created] = (await get(`/tasks/${id}/history`)).at('items') as {
      changes: { path: string; after: unknown }[];
    }[];
    const payload = created?.changes.find(({ path }) => path === 'payload');
    expect(payload?.after).to.deep.equal({
      truncated: true,
      size_bytes: Buffer.byteLength(JSON.stringify(payloadOf(70_000))),
    });
  });

  it('states the position of its content, even if more has happened since the request', async () => {
    const { readModel } = api();
    const list = readModel.list.bind(readModel);
    let late = '';
    readModel.list = async (...given) => {
      if (late === '') {
        late = 'being made';
        const { admin } = api();
        const made = await admin.client.post('/tasks', { ...plainTask(admin.id), tags: ['late'] });
        late = made.header('X-Event-Position');
        await admin.client.get(`/tasks/${made.textAt('id')}?after=${late}`);
      }
      return list(...given);
    };
    const answer = await get('/tasks?tag=late').finally(() => {
      readModel.list = list;
    });
    const { items, total } = answer.json as unknown as Page;
    expect([items.length, total]).to.deep.equal([1, 1]);
    expect(answer.header('X-Read-Position') >= late).to.equal(true);
  });

  it('is one of at most four that are read at a time, and delays nothing else', async () => {
    const { readModel } = api();
    const list = readModel.list.bind(readModel);
    const begun = new Signal('a list');
    const proceed = new Signal('the lists to continue');
    let underWay = 0;
    let most = 0;
    readModel.list = async (...given) => {
      underWay += 1;
      most = Math.max(most, underWay);
      begun.send();
      await proceed.wait();
      underWay -= 1;
      return list(...given);
    };
    const asked = Array.from({ length: 20 }, () => get('/tasks?limit=1'));
    await begun.count(4);
    const id = await makeTask(10, 'meanwhile');
    expect((await get(`/tasks/${id}`)).status).to.equal(200);
    expect(begun.values.length).to.equal(4);
    proceed.send();
    const answers = await Promise.all(asked).finally(() => {
      readModel.list = list;
    });
    expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]));
    expect(most).to.equal(4);
  });
});
