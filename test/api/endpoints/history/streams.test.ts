import { expect } from 'chai';
import { HIDDEN } from '../../../../api/endpoints/events/event-records.ts';
import { requireReadable } from '../../../../domain/event-store.ts';
import { streams } from '../../../../domain/streams.ts';
import type { FaultyEventStore } from '../../../support/faulty-stores.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';

describe('streams over HTTP', () => {
  const api = useRunningApi();
  let auditor: SignedIn;
  before(async () => {
    auditor = await api().signIn(['audit:read']);
  });
  async function makeTask(changes = 0): Promise<string> {
    const { admin } = api();
    const id = (await admin.client.post('/tasks', plainTask(admin.id))).textAt('id');
    for (let n = 0; n < changes; n += 1) {
      await admin.client.put(`/tasks/${id}`, { title: `title ${n}` });
    }
    return id;
  }
  const get = async (path: string) => {
    const answer = await auditor.client.get(path);
    expect(answer.status, answer.text).to.equal(200);
    return answer;
  };
  type Items = readonly Record<string, unknown>[];

  it('are listed by prefix with their ends, page by page', async () => {
    const ids = [await makeTask(), await makeTask(2), await makeTask()];
    const listed: Record<string, unknown>[] = [];
    for (let cursor = ''; ;) {
      const page = await get(`/streams?prefix=task-&limit=2${cursor && `&cursor=${cursor}`}`);
      listed.push(...(page.at('items') as Items));
      if (page.at('next_cursor') === null) break;
      cursor = page.textAt('next_cursor');
    }
    expect(listed.map(({ stream }) => stream)).to.have.members(ids.map(streams.task));
    const second = listed.find(({ stream }) => stream === streams.task(ids[1] ?? ''));
    const known = await api().admin.client.get(`/tasks/${ids[1]}`);
    expect(second).to.include({ revision: 2, last_at: known.at('updated_at') });
  });

  it('show their events, forwards and backwards, page by page', async () => {
    const path = `/streams/task-${await makeTask(4)}`;
    const revisions = async (query: string): Promise<readonly unknown[]> => {
      const page = await get(`${path}?${query}`);
      return [...(page.at('items') as Items).map(({ revision }) => revision), page.at('next_from')];
    };
    expect(await revisions('')).to.deep.equal([0, 1, 2, 3, 4, null]);
    expect(await revisions('limit=2')).to.deep.equal([0, 1, 2]);
    expect(await revisions('limit=2&from=3')).to.deep.equal([3, 4, null]);
    expect(await revisions('direction=backwards&limit=2')).to.deep.equal([4, 3, 2]);
    expect(await revisions('direction=backwards&from=1')).to.deep.equal([1, 0, null]);
    expect(await revisions('from=5')).to.deep.equal([null]);
  });

  it('show a complete event', async () => {
    const { admin } = api();
    const id = await makeTask();
    const answer = await get(`/streams/task-${id}`);
    const [event] = answer.at('items') as Items;
    expect(Object.keys(event ?? {})).to.deep.equal([
      'stream',
      'revision',
      'position',
      'event_id',
      'type',
      'data',
      'metadata',
      'created_at',
    ]);
    expect(event).to.include({ stream: `task-${id}`, revision: 0, type: 'TaskCreated' });
    expect(event?.['metadata']).to.include({ actor: admin.id, source: '127.0.0.1' });
    expect(answer.at('items.0.data.definition.created_by')).to.equal(admin.id);
  });

  it('do not show the hash of a secret', async () => {
    const agent = await api().signIn([]);
    await api().admin.client.post(`/agents/${agent.id}/credentials`);
    const answer = await get(`/streams/agent-${agent.id}`);
    expect(answer.at('items.1.data.secret_hash')).to.equal(HIDDEN);
    expect(answer.text).to.not.contain('scrypt');
  });

  it('with special characters in their names are found', async () => {
    const { admin } = api();
    const event = { topic: 'a:b/c', payload: {}, source_agent_id: admin.id };
    await admin.client.post('/events', event);
    const answer = await get('/streams/topic-a%3Ab%2Fc');
    expect(answer.at('items.0.type')).to.equal('EventPublished');
  });

  it('that do not exist return 404', async () => {
    const answer = await auditor.client.get('/streams/nothing-here');
    expect(answer.status).to.equal(404);
    expect(answer.at('details')).to.deep.equal({ resource: 'stream', id: 'nothing-here' });
  });

  describe('with an event that does not fit its schema', () => {
    const BROKEN = 2;
    const seen = async (path: string): Promise<readonly unknown[]> => {
      const page = await get(path);
      return [...(page.at('items') as Items).map(({ revision }) => revision), page.at('next_from')];
    };
    let task = '';
    let stream = '';
    let whole: typeof FaultyEventStore.prototype.readStream;
    before(async () => {
      task = await makeTask(3);
      stream = streams.task(task);
      const { store } = api();
      whole = store.readStream.bind(store);
      store.readStream = async (name, part) => {
        const events = (await whole(name, part)).map((event) =>
          name === stream && event.revision === BROKEN ? { ...event, fault: 'broken' } : event,
        );
        return part?.faulty === true ? events : events.map(requireReadable);
      };
    });
    after(() => {
      api().store.readStream = whole;
    });

    it('can be read from both ends up to that event', async () => {
      expect(await seen(`/streams/${stream}`)).to.deep.equal([0, 1, BROKEN]);
      expect(await seen(`/streams/${stream}?direction=backwards`)).to.deep.equal([3, BROKEN]);
      expect(await seen(`/streams/${stream}?from=3`)).to.deep.equal([3, null]);
      expect(await seen(`/streams/${stream}?limit=2`)).to.deep.equal([0, 1, BROKEN]);
    });

    it('are refused from that event on, with its name', async () => {
      const { client } = auditor;
      const paths = [`/streams/${stream}?from=2`, `/streams/${stream}?from=2&direction=backwards`];
      const histories = [2, 3].map((cursor) => `/tasks/${task}/history?cursor=${cursor}`);
      for (const path of [...paths, ...histories]) {
        const answer = await client.get(path);
        expect(answer.status, path).to.equal(500);
        expect(answer.at('error')).to.equal('internal_error');
        const details = { error_type: 'CORRUPT_EVENT', stream, revision: BROKEN };
        expect(answer.at('details')).to.deep.include(details);
      }
    });

    it('have an audit up to that event', async () => {
      const page = await get(`/tasks/${task}/history`);
      expect((page.at('items') as Items).map(({ revision }) => revision)).to.deep.equal([0, 1]);
      expect(page.at('next_cursor')).to.equal(String(BROKEN));
    });

    it('show a record as of before that event, and none as of later', async () => {
      const { client } = await api().signIn(['audit:read', 'tasks:read']);
      const events = await api().store.readStream(stream, { faulty: true });
      const statuses: number[] = [];
      for (const { position } of events) {
        statuses.push((await client.get(`/tasks/${task}?as_of=${position}`)).status);
      }
      expect(statuses).to.deep.equal([200, 200, 500, 500]);
    });

    it("list the service's actions without that event", async () => {
      const page = await get(`/audit?actor=service&stream=${stream}`);
      expect(page.at('items')).to.deep.equal([]);
    });
  });
});
