import { expect } from 'chai';
import { IdempotencyKeys } from '../../../api/serving/idempotency.ts';
import { MAX_EVENT_BYTES } from '../../../domain/event-store.ts';
import { streams } from '../../../domain/streams.ts';
import { silent } from '../../../observability/telemetry.ts';
import type { EndpointResponse } from '../../../api/endpoint.ts';
import { deferred, eventually } from '../../support/signals.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { useRunningApi, type SignedIn } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';

describe('an Idempotency-Key', () => {
  const api = useRunningApi();
  let caller: SignedIn;
  beforeEach(async () => {
    caller = await api().signIn([
      'tasks:read',
      'tasks:write',
      'runs:read',
      'events:publish',
      'admin',
    ]);
  });
  const send = (path: string, body?: unknown, key = 'the key') =>
    caller.client.post(path, body, { headers: { 'idempotency-key': key } });
  const tasks = async (): Promise<unknown> =>
    (await caller.client.get(`/tasks?created_by=${caller.id}`)).at('total');

  it('returns the first response again, marked as a repetition', async () => {
    const first = await send('/tasks', plainTask(caller.id));
    const second = await send('/tasks', plainTask(caller.id));
    expect(first.status, first.text).to.equal(201);
    expect(first.headers).to.not.have.property('idempotent-replayed');
    expect(second.status).to.equal(201);
    expect(second.header('Idempotent-Replayed')).to.equal('true');
    expect(second.text).to.equal(first.text);
    for (const header of ['ETag', 'Location', 'X-Event-Position']) {
      expect(second.header(header), header).to.equal(first.header(header));
    }
    expect(await tasks()).to.equal(1);
  });

  it('treats bodies with reordered fields as equal', async () => {
    const { admin } = api();
    const headers = { 'idempotency-key': 'reordered' };
    const { payload, ...rest } = plainTask(admin.id);
    const one = { ...payload, params: { a: 1, b: [{ c: 2, d: 3 }] } };
    const other = { params: { b: [{ d: 3, c: 2 }], a: 1 }, ...payload };
    const first = await admin.client.post('/tasks', { ...rest, payload: one }, { headers });
    const again = await admin.client.post('/tasks', { payload: other, ...rest }, { headers });
    expect(again.header('idempotent-replayed')).to.equal('true');
    expect(again.at('id')).to.equal(first.at('id'));
  });

  it('returns a refusal again too', async () => {
    const bad = { ...plainTask(caller.id), schedule_expr: 'every day' };
    const first = await send('/tasks', bad);
    const second = await send('/tasks', bad);
    expect([first.status, second.status]).to.deep.equal([400, 400]);
    expect(second.header('Idempotent-Replayed')).to.equal('true');
    expect(second.text).to.equal(first.text);
  });

  it('is separate for each agent', async () => {
    await send('/tasks', plainTask(caller.id));
    caller = await api().signIn(['tasks:write']);
    const other = await send('/tasks', plainTask(caller.id));
    expect(other.status).to.equal(201);
    expect(other.headers).to.not.have.property('idempotent-replayed');
  });

  it('is rejected with another body, path or query', async () => {
    const { status, json } = await send('/tasks', plainTask(caller.id));
    expect(status).to.equal(201);
    const id = String(json['id']);
    for (const [path, body] of [
      ['/tasks', { ...plainTask(caller.id), title: 'Another' }],
      [`/tasks/${id}/pause`, undefined],
    ] as const) {
      const answer = await send(path, body);
      expect(answer.status, path).to.equal(409);
      expect(answer.at('details.field')).to.equal('Idempotency-Key');
    }
    expect(await tasks()).to.equal(1);
    const resume = `/tasks/${id}/resume`;
    expect((await send(resume, undefined, 'resuming')).status).to.equal(200);
    const other = await send(`${resume}?missed=all`, undefined, 'resuming');
    expect([other.status, other.at('details.field')]).to.deep.equal([409, 'Idempotency-Key']);
  });

  it('is rejected while the first request runs, and returns its response afterwards', async () => {
    const held = api().store.holdNext('task-');
    const first = send('/tasks', plainTask(caller.id));
    await held.arrived;
    const second = await send('/tasks', plainTask(caller.id));
    expect(second.status).to.equal(409);
    held.release();
    expect((await first).status).to.equal(201);
    expect((await send('/tasks', plainTask(caller.id))).text).to.equal((await first).text);
    expect(await tasks()).to.equal(1);
  });

  it('is reserved by one of many concurrent requests', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => send('/tasks', plainTask(caller.id))),
    );
    const fresh = answers.filter(
      ({ status, headers }) => status === 201 && headers['idempotent-replayed'] === undefined,
    );
    expect(fresh).to.have.length(1);
    for (const { status } of answers) expect(status).to.be.oneOf([201, 409]);
    expect(await tasks()).to.equal(1);
  });

  it('repeats a command, with the same ids, if its response was too large to store', async () => {
    const { store, clock } = api();
    const keys = new IdempotencyKeys(store, clock, silent.failures);
    const request = { agentId: caller.id, key: 'large', method: 'POST', path: '/x', body: null };
    const about = { actor: caller.id, source: 'test', correlationId: 'test' };
    const text = 'x'.repeat(MAX_EVENT_BYTES);
    const ids: string[] = [];
    for (let times = 0; times < 2; times += 1) {
      const context = { ...about, commandId: `command ${times}`, now: clock.now() };
      const answer = await keys.once(request, context, (id) => {
        ids.push(id);
        return Promise.resolve({ body: { text } });
      });
      expect(answer.body).to.deep.equal({ text });
    }
    expect(ids).to.have.length(2);
    expect(ids[0]).to.equal(ids[1]);
  });

  it('is rejected while the first request runs, in its process and in others', async () => {
    const clock = new VirtualClock();
    const { store } = api();
    const warnings: object[] = [];
    const failed = (_work: string, _error: unknown, fields = {}): void =>
      void warnings.push(fields);
    const failures = { ...silent.failures, failed };
    const [own, other] = [1, 2].map(() => new IdempotencyKeys(store, clock, failures)) as [
      IdempotencyKeys,
      IdempotencyKeys,
    ];
    const request = { agentId: caller.id, key: 'long', method: 'POST', path: '/x', body: null };
    const calls: string[] = [];
    const [begun, ended] = [deferred(), deferred()];
    const send = (keys: IdempotencyKeys): Promise<EndpointResponse> => {
      const now = clock.now();
      const about = { actor: caller.id, source: 'test', correlationId: 'test', now };
      return keys.once(request, { ...about, commandId: 'command' }, async (id) => {
        calls.push(id);
        begun.resolve();
        await ended.promise;
        return { body: { calls: calls.length } };
      });
    };
    const first = send(own);
    await begun.promise;
    const stream = streams.idempotency(caller.id, 'long');
    for (let said = 2; said <= 12; said += 1) {
      await clock.advance(5_000);
      await eventually(async () => (await store.readStream(stream)).length === said);
      for (const keys of [own, other]) {
        const refused = await send(keys).then(
          () => 'carried out',
          (error: unknown) => String(error),
        );
        expect(refused).to.include('is still under way');
      }
    }
    // Its last event may be in the log although its process received no confirmation.
    store.failNext(stream, 'after');
    await clock.advance(5_000);
    await eventually(() => warnings.length === 1);
    expect(warnings[0]).to.include({ stream });
    ended.resolve();
    expect(await first).to.deep.include({ body: { calls: 1 } });
    expect(clock.pending).to.equal(0);
    for (const keys of [own, other]) {
      expect((await send(keys)).headers).to.include({ 'Idempotent-Replayed': 'true' });
    }
    expect(calls).to.have.length(1);
  });

  describe('of a repeated command', () => {
    const cuts: readonly (readonly [string, string, 'before' | 'after', string | undefined])[] = [
      ['before its record', 'idem-', 'before', 'CommandReceived'],
      ['just after its record', 'idem-', 'after', 'CommandReceived'],
      ['before the creation of the task', 'task-', 'before', undefined],
      ['just after the creation of the task', 'task-', 'after', undefined],
      ['before the record of the response', 'idem-', 'before', 'CommandAnswered'],
      ['just after the record of the response', 'idem-', 'after', 'CommandAnswered'],
    ];
    for (const [what, stream, when, type] of cuts) {
      it(`completes the same command after an interruption ${what}`, async () => {
        api().store.failNext(stream, when, type);
        const first = await send('/tasks', plainTask(caller.id));
        expect(first.status, first.text).to.equal(503);
        const second = await send('/tasks', plainTask(caller.id));
        expect(second.status, second.text).to.equal(201);
        expect(second.header('ETag')).to.equal('"0"');
        const third = await send('/tasks', plainTask(caller.id));
        expect(third.text).to.equal(second.text);
        expect(await tasks()).to.equal(1);
      });
    }

    it('runs a command that lost each race', async () => {
      const { json } = await send('/tasks', plainTask(caller.id));
      const path = `/tasks/${String(json['id'])}/pause`;
      for (let race = 0; race < 20; race += 1) api().store.failNext('task-', 'race');
      expect((await send(path, undefined, 'pause')).status).to.equal(409);
      const second = await send(path, undefined, 'pause');
      expect(second.status, second.text).to.equal(200);
      expect(second.at('details.new_status')).to.equal('paused');
    });

    it('completes a one-time task whose time has passed in the meantime', async () => {
      const at = new Date(api().clock.now() + 60_000).toISOString();
      const once = { ...plainTask(caller.id), schedule_kind: 'once', schedule_expr: at };
      api().store.failNext('task-', 'after');
      expect((await send('/tasks', once)).status).to.equal(503);
      api().clock.shift(120_000);
      const second = await send('/tasks', once);
      expect(second.status, second.text).to.equal(201);
      expect(second.at('next_run_at')).to.equal(at);
    });

    it('requests one run', async () => {
      const { json } = await send('/tasks', plainTask(caller.id));
      const path = `/tasks/${String(json['id'])}/run_now`;
      api().store.failNext('run-', 'after');
      expect((await send(path, undefined, 'run')).status).to.equal(503);
      const second = await send(path, undefined, 'run');
      expect(second.status, second.text).to.equal(200);
      expect(second.header('X-Event-Position')).to.match(/^[0-9a-f]+$/);
      const runs = await caller.client.get(`/runs?task_id=${String(json['id'])}`);
      expect(runs.at('total')).to.equal(1);
      expect(runs.at('items.0.id')).to.equal(second.at('details.run_id'));
    });

    it('publishes one event, for the tasks that the first attempt triggered', async () => {
      const listening = {
        ...plainTask(caller.id),
        schedule_kind: 'event',
        schedule_expr: 'cut.short',
      };
      const { json } = await send('/tasks', listening, 'first task');
      const event = { topic: 'cut.short', payload: {}, source_agent_id: caller.id };
      api().store.failNext('topic-', 'after');
      expect((await send('/events', event)).status).to.equal(503);
      await send('/tasks', listening, 'second task');
      const second = await send('/events', event);
      expect(second.status, second.text).to.equal(202);
      expect(second.at('details.triggered_tasks')).to.deep.equal([json['id']]);
      const published = await api().store.readStream('topic-cut.short');
      expect(published).to.have.length(1);
      expect(published[0]?.data).to.include({
        event_id: second.at('details.event_id'),
        published_at: second.at('details.published_at'),
      });
    });

    it('reports the status before a pause and a cancellation', async () => {
      const { json } = await send('/tasks', plainTask(caller.id));
      for (const [what, old_status] of [
        ['pause', 'active'],
        ['cancel', 'paused'],
      ] as const) {
        api().store.failNext('task-', 'after');
        const path = `/tasks/${String(json['id'])}/${what}`;
        expect((await send(path, undefined, what)).status).to.equal(503);
        expect((await send(path, undefined, what)).at('details.old_status')).to.equal(old_status);
      }
    });
  });

  it('can be used for another command after a day', async () => {
    const first = await send('/tasks', plainTask(caller.id));
    api().clock.shift(86_400_000 + 1000);
    const other = { ...plainTask(caller.id), title: 'The next day' };
    const second = await send('/tasks', other);
    expect(second.status, second.text).to.equal(201);
    expect(second.at('id')).to.not.equal(first.at('id'));
    expect(second.at('title')).to.equal('The next day');
    expect((await send('/tasks', other)).text).to.equal(second.text);
    expect(await tasks()).to.equal(2);
  });

  it('starts over if its earlier entries were truncated in the log', async () => {
    const first = await send('/tasks', plainTask(caller.id), 'forgotten');
    await api().store.truncate(streams.idempotency(caller.id, 'forgotten'), 2);
    const second = await send('/tasks', plainTask(caller.id), 'forgotten');
    expect(second.status, second.text).to.equal(201);
    expect(second.textAt('id')).to.not.equal(first.textAt('id'));
    const again = await send('/tasks', plainTask(caller.id), 'forgotten');
    expect(again.text).to.equal(second.text);
  });

  it('is rejected if it is empty or too long', async () => {
    for (const key of ['', 'k'.repeat(201)]) {
      const answer = await send('/tasks', plainTask(caller.id), key);
      expect(answer.status).to.equal(400);
      expect(answer.at('details.field')).to.equal('Idempotency-Key');
    }
  });

  it('is ignored for commands that issue credentials', async () => {
    const path = `/agents/${caller.id}/credentials`;
    const { admin } = api();
    const headers = { 'idempotency-key': 'secret' };
    const first = await admin.client.post(path, undefined, { headers });
    const second = await admin.client.post(path, undefined, { headers });
    expect(second.status).to.equal(200);
    expect(second.at('agent_secret')).to.not.equal(first.at('agent_secret'));
  });
});
