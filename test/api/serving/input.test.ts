import { expect } from 'chai';
import { streams } from '../../../domain/streams.ts';
import type { ReceivedResponse } from '../../support/api-client.ts';
import { useRunningApi, type SignedIn } from '../../support/running-api.ts';
import { inKolkata, plainTask } from '../plain-task.ts';

/** The reported field and issue of a response. */
const faultOf = (answer: ReceivedResponse): { readonly field: string; readonly issue: string } =>
  answer.at('details') as { readonly field: string; readonly issue: string };

const NOBODY = '01a1fc11-0000-7000-8000-000000000000';

describe('client input over HTTP', () => {
  const api = useRunningApi();
  let me: SignedIn;

  beforeEach(async () => {
    me = await api().signIn(['admin']);
  });

  it('may have an unencoded plus in a time', async () => {
    const moment = '2090-01-01T00:00:00+05:45';
    const made = await me.client.post('/tasks', plainTask(me.id));
    for (const path of [
      '/runs?start_time=',
      '/runs?end_time=',
      '/tasks/due?until=',
      '/audit?from=',
      '/audit?to=',
      `/tasks/${made.textAt('id')}/explain?at=`,
      `/tasks/${made.textAt('id')}?as_of=`,
    ]) {
      const answer = await me.client.get(path + moment);
      expect(answer.status, `${path}: ${answer.text}`).to.equal(200);
    }
  });

  it('rejects a cursor with values of other types than the list has', async () => {
    await me.client.post('/tasks', plainTask(me.id));
    await me.client.post('/tasks', plainTask(me.id));
    for (const path of ['/tasks', '/audit']) {
      const page = await me.client.get(`${path}?limit=1`);
      const place = Buffer.from(page.textAt('next_cursor'), 'base64url').toString();
      const [order, , key] = JSON.parse(place) as unknown[];
      for (const value of [5, true]) {
        const other = Buffer.from(JSON.stringify([order, [value], key])).toString('base64url');
        const refused = await me.client.get(`${path}?cursor=${other}`);
        expect(refused.status, `${path} ${String(value)}: ${refused.text}`).to.equal(400);
        expect(faultOf(refused).field).to.equal('cursor');
      }
    }
  });

  it('needs an offset in each time that has no time zone', async () => {
    for (const [path, field] of [
      ['/runs?start_time=', 'start_time'],
      ['/tasks/due?until=', 'until'],
      ['/audit?from=', 'from'],
      [`/agents/${NOBODY}?as_of=`, 'as_of'],
    ] as const) {
      const answer = await me.client.get(`${path}2090-01-01T00:00:00`);
      expect(answer.status, path).to.equal(400);
      expect(faultOf(answer).field).to.equal(field);
      expect(answer.textAt('message')).to.include('has no offset from UTC');
    }
  });

  it("is read in the task's zone if a time has no offset and there is a task", async () => {
    const made = await me.client.post('/tasks', { ...plainTask(me.id), timezone: 'Asia/Kolkata' });
    const task = made.textAt('id');
    const run = (await me.client.post(`/tasks/${task}/run_now`)).textAt('details.run_id');
    const data = { worker: 'w', attempt: 1, leased_until: '2090-01-01T00:00:00.000Z' };
    await api().append(streams.run(run), [{ type: 'RunStarted', data }]);
    const head = await api().store.head();
    const total = async (span: string): Promise<unknown> =>
      (await me.client.get(`/runs?task_id=${task}&after=${head}&${span}`)).at('total');
    const [before, after] = [-1, 1].map((hours) =>
      inKolkata(api().clock.now() + hours * 3_600_000),
    );
    expect(await total(`start_time=${before}&end_time=${after}`)).to.equal(1);
    expect(await total(`start_time=${after}`)).to.equal(0);
    expect(await total(`end_time=${before}`)).to.equal(0);
  });

  it('may not have a character in a query at which a store would truncate it', async () => {
    for (const [path, field] of [
      ['/tasks?search=%00', 'search'],
      ['/tasks?tag=a%00b', 'tag'],
      ['/agents?name_filter=x%00', 'name_filter'],
    ] as const) {
      const answer = await me.client.get(path);
      expect([answer.status, faultOf(answer).field], path).to.deep.equal([400, field]);
    }
  });

  it('may not have a time beyond the years 0001 to 9999', async () => {
    const beyond = '9999-12-31T23:59:59-10:00';
    const read = await me.client.get(`/runs?start_time=${beyond}`);
    const made = await me.client.post('/tasks', { ...plainTask(me.id), starts_at: beyond });
    expect([read.status, faultOf(read).field]).to.deep.equal([400, 'start_time']);
    expect([made.status, faultOf(made).field]).to.deep.equal([400, 'starts_at']);
    const early = { ...plainTask(me.id), starts_at: '0001-01-01T00:00:00+14:00' };
    const ancient = await me.client.post('/tasks', early);
    expect([ancient.status, faultOf(ancient).field]).to.deep.equal([400, 'starts_at']);
    const task = await me.client.post('/tasks', plainTask(me.id));
    const span = { from: early.starts_at, to: '2026-01-01T00:00:00Z' };
    const backfill = await me.client.post(`/tasks/${task.textAt('id')}/backfill`, span);
    expect([backfill.status, faultOf(backfill).field]).to.deep.equal([400, 'from']);
  });

  it('may not snooze a fire beyond the year 9999', async () => {
    const last = { schedule_kind: 'once', schedule_expr: '9999-12-31T23:59:00Z' };
    const made = await me.client.post('/tasks', { ...plainTask(me.id), ...last });
    const snooze = (delay_seconds: number) =>
      me.client.post(`/tasks/${made.textAt('id')}/snooze`, { delay_seconds });
    expect((await snooze(60)).status).to.equal(409);
    expect((await snooze(59)).at('details.next_run_at')).to.equal('9999-12-31T23:59:59.000Z');
    expect((await snooze(1)).status).to.equal(409);
  });

  it('is rejected with the allowed values', async () => {
    const issueOf = async (fields: object): Promise<string> => {
      const answer = await me.client.post('/tasks', { ...plainTask(me.id), ...fields });
      expect(answer.status, answer.text).to.equal(400);
      return faultOf(answer).issue;
    };
    expect(await issueOf({ title: 'x'.repeat(201) })).to.equal('must have at most 200 characters');
    expect(await issueOf({ priority: 0 })).to.equal('must be at least 1');
    expect(await issueOf({ priority: 10 })).to.equal('must be at most 9');
    expect(await issueOf({ timeout_seconds: 0 })).to.equal('must be more than 0');
    const named = { name: 'twice', scopes: ['tasks:read', 'runs:read', 'tasks:read'] };
    const agent = await me.client.post('/agents', named);
    expect(faultOf(agent).issue).to.equal('must not have equal items (0 and 2)');
  });

  it('is rejected with the reason if a valid rule has no future fire', async () => {
    const issueOf = async (fields: object): Promise<string> => {
      const answer = await me.client.post('/tasks', { ...plainTask(me.id), ...fields });
      expect([answer.status, faultOf(answer).field]).to.deep.equal([400, 'schedule_expr']);
      return faultOf(answer).issue;
    };
    expect(await issueOf({ ends_at: '2020-01-01T00:00:00Z' })).to.match(
      /^has no future fire: its next, .+Z, is after ends_at$/,
    );
    const early = { schedule_kind: 'once', schedule_expr: '2090-01-01T00:00:00Z' };
    expect(await issueOf({ ...early, starts_at: '2091-01-01T00:00:00Z' })).to.equal(
      'has no future fire: its last, 2090-01-01T00:00:00.000Z, is before starts_at',
    );
    const past = { schedule_kind: 'once', schedule_expr: '2020-01-01T00:00:00Z' };
    expect(await issueOf(past)).to.equal('has no future fire: that time has passed');
    expect(await issueOf({ schedule_expr: '0 0 30 2 *' })).to.equal('has no future fire');
  });

  describe('with a number that JavaScript cannot represent', () => {
    const send = (path: string, raw: string, headers = {}): Promise<ReceivedResponse> =>
      me.client.post(path, undefined, {
        raw,
        headers: { 'content-type': 'application/json', ...headers },
      });
    const taskWith = (payload: string): string => {
      const task = JSON.stringify({ ...plainTask(me.id), payload: 'here' });
      return task.replace('"here"', payload);
    };

    it('is rejected with the path of each', async () => {
      const answer = await send(
        '/tasks',
        taskWith(
          '{"params": {"id": 7615917337495251231}, "pipeline": [{"uses": "echo", "with": [1, 1e400]}]}',
        ),
      );
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.at('details')).to.deep.equal({
        field: 'payload.params.id',
        issue:
          'must be an integer within ±9007199254740991 (2^53 - 1), got 7615917337495251231; send it as a string',
        issues: [
          {
            field: 'payload.params.id',
            issue:
              'must be an integer within ±9007199254740991 (2^53 - 1), got 7615917337495251231; send it as a string',
          },
          {
            field: 'payload.pipeline.0.with.1',
            issue: 'must be a number within ±1.8e308, got 1e400; send it as a string',
          },
        ],
      });
    });

    it('is rejected at the limit, and accepted one below it', async () => {
      for (const [number, status] of [
        ['9007199254740991', 201],
        ['-9007199254740991', 201],
        ['9007199254740993.0', 201],
        ['1e20', 201],
        ['9007199254740992', 400],
        ['-9007199254740992', 400],
      ] as const) {
        const body = taskWith(`{"params": {"n": ${number}}, "pipeline": []}`);
        expect((await send('/tasks', body)).status, number).to.equal(status);
      }
    });

    it('does not include floats, which are kept whatever their size', async () => {
      const payload = '{"params": {"n": [1e20, 1.5e300, 0.12345678901234567891]}, "pipeline": []}';
      const made = await send('/tasks', taskWith(payload));
      const read = await me.client.get(`/tasks/${made.textAt('id')}`);
      expect(read.at('payload.params.n')).to.deep.equal([1e20, 1.5e300, 0.12345678901234568]);
    });

    it('is never in a response: a float keeps its exponent, and can be sent back', async () => {
      const raw =
        '{"params":{"n":[1e20,-9007199254740992.0],"s":"100000000000000000000"},"pipeline":[]}';
      const made = await send('/tasks', taskWith(raw));
      const path = `/tasks/${made.textAt('id')}`;
      const written = raw
        .replace('1e20', '1e+20')
        .replace('9007199254740992.0', '9.007199254740992e+15');
      for (const from of [path, '/tasks', `${path}/history`]) {
        expect((await me.client.get(from)).text, from).to.contain(written);
      }
      const sentBack = await me.client.put(path, undefined, {
        raw: `{"payload":${written}}`,
        headers: { 'content-type': 'application/json' },
      });
      expect(sentBack.status, sentBack.text).to.equal(200);
      const key = { 'idempotency-key': 'twice' };
      for (const _ of [1, 2])
        expect((await send('/tasks', taskWith(raw), key)).text).to.contain(written);
    });

    it('is rejected in every body, before its schema is checked', async () => {
      const event = (n: string): string =>
        `{"topic": "a", "source_agent_id": "${me.id}", "payload": {"n": ${n}}}`;
      const made = await send('/tasks', taskWith('{"pipeline": []}'));
      const id = made.textAt('id');
      for (const [path, raw, field] of [
        ['/events', event('7615917337495251231'), 'payload.n'],
        [`/tasks/${id}/snooze`, '{"delay_seconds": 1e400}', 'delay_seconds'],
        ['/schedules/preview', '{"count": 90071992547409931, "x": 1}', 'count'],
        ['/agents', '9007199254740993', 'body'],
      ] as const) {
        const answer = await send(path, raw);
        expect(answer.status, `${path} ${answer.text}`).to.equal(400);
        expect(faultOf(answer).field, path).to.equal(field);
      }
      const put = await me.client.put(`/tasks/${id}`, undefined, {
        raw: '{"payload": {"pipeline": [], "params": [9007199254740993]}}',
        headers: { 'content-type': 'application/json' },
      });
      expect(faultOf(put).field).to.equal('payload.params.0');
    });

    it('never makes two bodies equal for an Idempotency-Key', async () => {
      const body = (n: string): string => taskWith(`{"params": {"n": "${n}"}, "pipeline": []}`);
      const bare = (n: string): string => body(n).replace(`"${n}"`, n);
      const key = { 'idempotency-key': 'numbers' };
      for (const n of ['7615917337495251231', '7615917337495251232']) {
        expect((await send('/tasks', bare(n), key)).status).to.equal(400);
      }
      expect((await send('/tasks', body('7615917337495251231'), key)).status).to.equal(201);
      expect((await send('/tasks', body('7615917337495251232'), key)).status).to.equal(409);
    });
  });
});
