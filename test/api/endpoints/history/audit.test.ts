import { expect } from 'chai';
import type { NewEvent } from '../../../../domain/event-store.ts';
import { catalogue } from '../../../../domain/events/catalogue.ts';
import { newId } from '../../../../domain/ids.ts';
import { hiddenFields } from '../../../../api/endpoints/events/event-records.ts';
import { streams } from '../../../../domain/streams.ts';
import { EventStream } from '../../../support/event-stream.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { auditOf, type Item } from '../../auditing.ts';
import { plainTask } from '../../plain-task.ts';

describe('the audit over HTTP', () => {
  const api = useRunningApi();
  let auditor: SignedIn;
  let agent: SignedIn;
  before(async () => {
    auditor = await api().signIn(['audit:read']);
  });
  beforeEach(async () => {
    agent = await api().signIn(['tasks:read', 'tasks:write']);
  });
  const audit = (query: string): Promise<readonly Item[]> => auditOf(api(), auditor, query);
  async function makeTask(): Promise<string> {
    return (await agent.client.post('/tasks', plainTask(agent.id))).textAt('id');
  }

  it('lists who did what, from where, why and in which request, newest first', async () => {
    const id = await makeTask();
    const headers = {
      'x-reason': Buffer.from('überfällig').toString('latin1'),
      'x-request-id': 'request-77',
    };
    await agent.client.post(`/tasks/${id}/pause`, undefined, { headers });
    const items = await audit(`actor=${agent.id}`);
    expect(items.map(({ action }) => action)).to.deep.equal(['TaskPaused', 'TaskCreated']);
    const [paused] = items;
    expect(paused).to.include({
      actor: agent.id,
      source: '127.0.0.1',
      type: 'TaskPaused',
      stream: streams.task(id),
      revision: 1,
      reason: 'überfällig',
      correlation_id: 'request-77',
      outcome: 'done',
      refusal: null,
    });
  });

  it('records the actor, source and request of every command', async () => {
    const { admin } = api();
    const id = await makeTask();
    const headers = { 'x-reason': 'because', 'x-request-id': `all-${newId(0)}` };
    const does = async (method: string, path: string, body?: object): Promise<string> => {
      const answer = await admin.client.send(method, path, { headers, ...(body ? { body } : {}) });
      expect(answer.status, `${method} ${path} ${answer.text}`).to.be.below(300);
      return answer.text;
    };
    const made = JSON.parse(await does('POST', '/agents', { name: 'audited', scopes: [] })) as {
      id: string;
    };
    await does('PUT', `/agents/${made.id}`, { scopes: ['x'] });
    await does('POST', `/agents/${made.id}/credentials`);
    await does('DELETE', `/agents/${made.id}`);
    await does('PUT', `/tasks/${id}`, { title: 'x' });
    await does('POST', `/tasks/${id}/run_now`);
    await does('POST', `/tasks/${id}/snooze`, { delay_seconds: 5 });
    await does('POST', `/tasks/${id}/pause`);
    await does('POST', `/tasks/${id}/resume`);
    await does('POST', `/tasks/${id}/cancel`);
    await does('POST', '/events', { topic: 'a.b', payload: {}, source_agent_id: admin.id });
    await does('POST', '/replays', { name: 'audited', until: await api().store.head() });
    await does('DELETE', '/replays/audited');
    const other = await makeTask();
    const due = api().clock.now();
    const [from, to] = [due - 86_400_000, due].map((at) => new Date(at).toISOString());
    await does('POST', `/tasks/${other}/backfill`, { from, to });
    const ran = JSON.parse(await does('POST', `/tasks/${other}/run_now`)) as {
      details: { run_id: string };
    };
    await does('POST', `/runs/${ran.details.run_id}/cancel`);
    api().clock.shift(10_000);
    await does('DELETE', '/stream/cleanup?max_age_hours=0.001');
    await does('POST', '/projections/runs/rebuild');
    await does('POST', '/operations/hold', { reason: 'because of the body' });
    await does('POST', '/operations/release');
    const items = (await audit(`actor=${admin.id}&limit=200`)).filter(
      ({ correlation_id }) => correlation_id === headers['x-request-id'],
    );
    expect(items.map(({ type }) => type)).to.include.members([
      'AgentRegistered',
      'AgentUpdated',
      'AgentCredentialsSet',
      'AgentRemoved',
      'TaskUpdated',
      'RunRequested',
      'TaskSnoozed',
      'TaskPaused',
      'TaskResumed',
      'TaskCanceled',
      'EventPublished',
      'ReplayRequested',
      'ReplayDropRequested',
      'BackfillRequested',
      'RunCanceled',
      'TopicTrimmed',
      'ProjectionRebuildRequested',
      'OperationsHeld',
      'OperationsReleased',
    ]);
    const wrong = items.filter(({ source, reason }) => source !== '127.0.0.1' || reason === null);
    expect(wrong).to.deep.equal([]);
  });

  it('can be filtered by actor, stream, type and time, and continues at its cursor', async () => {
    const first = await makeTask();
    api().clock.shift(60_000);
    const second = await makeTask();
    await agent.client.post(`/tasks/${second}/pause`);
    const of = async (query: string): Promise<readonly string[]> =>
      (await audit(query)).map(({ stream, type }) => `${type} ${stream}`);
    const made = [`TaskCreated task-${second}`, `TaskCreated task-${first}`];
    expect(await of(`stream=task-${first}`)).to.deep.equal([made[1]]);
    expect(await of(`actor=${agent.id}&type=TaskCreated`)).to.deep.equal(made);
    const [newest, oldest] = await audit(`actor=${agent.id}&type=TaskCreated`);
    expect(await of(`actor=${agent.id}&to=${oldest?.at}`)).to.deep.equal([made[1]]);
    expect(await of(`actor=${agent.id}&from=${newest?.at}&type=TaskCreated`)).to.deep.equal([
      made[0],
    ]);
    const seen: string[] = [];
    for (let cursor = ''; ;) {
      const query = `actor=${agent.id}&limit=2${cursor && `&cursor=${cursor}`}`;
      const page = await auditor.client.get(`/audit?${query}`);
      expect(page.at('total')).to.equal(3);
      seen.push(...(page.at('items') as readonly Item[]).map(({ position }) => position));
      if (page.at('next_cursor') === null) break;
      cursor = page.textAt('next_cursor');
    }
    expect(seen).to.have.lengthOf(3);
    expect(seen).to.deep.equal([...seen].sort().reverse());
  });

  it("lists the service's own actions in a stream from the log", async () => {
    const id = await makeTask();
    const run = (await agent.client.post(`/tasks/${id}/run_now`)).textAt('details.run_id');
    const own = await auditor.client.get(`/audit?actor=service&stream=task-${id}`);
    expect(own.at('items')).to.deep.equal([]);
    const context = {
      actor: 'service',
      source: 'worker',
      $correlationId: 'c',
      commandId: newId(0),
    };
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      await api().store.append(
        streams.run(run),
        [
          {
            id: newId(0),
            type: 'RunStarted',
            data: { worker: 'w', attempt, leased_until: '2026-03-01T09:00:00.000Z' },
            metadata: { ...context, schemaVersion: '1', occurredAt: '2026-03-01T09:00:00.000Z' },
          },
        ],
        'any',
      );
    }
    const page = await auditor.client.get(`/audit?actor=service&stream=run-${run}&limit=2`);
    const revisions = (page.at('items') as readonly Item[]).map(({ revision }) => revision);
    expect(revisions).to.deep.equal([3, 2]);
    const cursor = page.textAt('next_cursor');
    const rest = await auditor.client.get(
      `/audit?actor=service&stream=run-${run}&limit=2&cursor=${cursor}`,
    );
    expect((rest.at('items') as readonly Item[]).map(({ revision }) => revision)).to.deep.equal([
      1,
    ]);
    expect(rest.at('next_cursor')).to.equal(null);
    const asked = await audit(`stream=run-${run}`);
    expect(asked.map(({ type }) => type)).to.deep.equal(['RunRequested']);
    // The view holds the same, but is not queried by stream.
    expect(await audit(`actor=${agent.id}&type=RunRequested`)).to.deep.equal(asked);
  });

  it("lists the service's own actions in all streams from the log, a part at a time", async () => {
    const id = await makeTask();
    const correlation = newId(0);
    const corrections = correctionsOf(api().clock.now(), 3, correlation);
    await api().store.append(streams.fires(id), corrections, 'none');
    await makeTask();
    const seen: Item[] = [];
    let pages = 0;
    for (let cursor = ''; ; pages += 1) {
      const answer = await auditor.client.get(`/audit?actor=service&limit=2${cursor}`);
      expect(answer.status, answer.text).to.equal(200);
      seen.push(...(answer.at('items') as readonly Item[]));
      if (answer.at('next_cursor') === null) break;
      cursor = `&cursor=${answer.textAt('next_cursor')}`;
    }
    expect(pages).to.be.at.least(1);
    const own = seen.filter(({ correlation_id }) => correlation_id === correlation);
    expect(own.map(({ revision }) => revision)).to.deep.equal([2, 1, 0]);
    expect(seen.every(({ actor }) => actor === 'service')).to.equal(true);
  });

  it("lists the service's actions until a time on the first page, however many followed", async () => {
    const { store, clock } = api();
    const began = clock.now();
    const doneAt = async (at: number, count: number): Promise<string> => {
      const stream = streams.fires(newId(at));
      await store.append(stream, correctionsOf(at, count), 'none');
      return stream;
    };
    const stream = await doneAt(began, 2);
    // More events than one page reads, beyond the assumed clock skew.
    await doneAt(began + 60_000, 2_600);
    await doneAt(began + 60_000, 2_600);
    const to = new Date(began + 1).toISOString();
    const page = await auditor.client.get(`/audit?actor=service&limit=2&to=${to}`);
    expect(page.status, page.text).to.equal(200);
    const listed = (page.at('items') as readonly Item[]).map((item) => [
      item.stream,
      item.revision,
    ]);
    expect(listed).to.deep.equal([
      [stream, 1],
      [stream, 0],
    ]);
    const before = '2000-01-01T00:00:00Z';
    const none = await auditor.client.get(`/audit?actor=service&to=${before}`);
    expect([none.at('items'), none.at('next_cursor')]).to.deep.equal([[], null]);
  });

  it('lists its actions in one stream until a time on the first page, however many followed', async () => {
    const { store, clock } = api();
    const began = clock.now();
    const stream = streams.fires(newId(began));
    await store.append(stream, correctionsOf(began, 3), 'none');
    for (const _ of [1, 2]) await store.append(stream, correctionsOf(began + 60_000, 2_600), 'any');
    const upTo = async (to: number, rest = ''): Promise<readonly unknown[]> => {
      const query = `actor=service&stream=${stream}&to=${new Date(to).toISOString()}&limit=2${rest}`;
      const page = await auditor.client.get(`/audit?${query}`);
      const revisions = (page.at('items') as readonly Item[]).map(({ revision }) => revision);
      return [revisions, page.at('next_cursor')];
    };
    expect(await upTo(began + 1)).to.deep.equal([[2, 1], '0']);
    expect(await upTo(began + 1, '&cursor=0')).to.deep.equal([[0], null]);
    expect(await upTo(began - 60_000)).to.deep.equal([[], null]);
    expect(await upTo(began + 60_000)).to.deep.equal([[5_202, 5_201], '5200']);
  });

  describe('as a live stream', () => {
    const opened: EventStream[] = [];
    afterEach(() => {
      for (const stream of opened.splice(0)) stream.close();
    });
    const open = async (query: string, after?: string): Promise<EventStream> => {
      const headers = after === undefined ? {} : { 'last-event-id': after };
      const stream = await EventStream.open(
        `${api().url}/audit/live?${query}`,
        auditor.client.token,
        headers,
      );
      opened.push(stream);
      await stream.named('live.started');
      return stream;
    };

    it('has only actions and refusals of agents', async () => {
      const stream = await open(`actor=${agent.id}`);
      await api().admin.client.post('/tasks', plainTask(api().admin.id));
      const id = await makeTask();
      await agent.client.post('/agents', { name: 'x', scopes: [] });
      await api().refusals.flush();
      const done = await stream.named('audit.done');
      expect(done.data).to.include({ action: 'TaskCreated', stream: streams.task(id) });
      const refused = await stream.named('audit.refused');
      expect(refused.data).to.include({ action: 'POST /agents', actor: agent.id });
      expect(stream.messages).to.have.lengthOf(3);
    });

    it('continues after the last event that the client received', async () => {
      await makeTask();
      const position = await api().store.head();
      const id = await makeTask();
      const stream = await open(`actor=${agent.id}`, position);
      expect((await stream.named('audit.done')).data).to.include({ stream: streams.task(id) });
    });

    it('ends when the token is revoked', async () => {
      const other = await api().signIn(['audit:read']);
      const url = `${api().url}/audit/live`;
      const stream = await EventStream.open(url, other.client.token);
      opened.push(stream);
      await stream.named('live.started');
      await other.client.post('/agents/auth/revoke', { token: other.client.token });
      expect((await stream.named('live.ended')).data).to.include({ reason: 'access_ended' });
    });
  });
});

describe('recorded reads of the audit', () => {
  const api = useRunningApi({ auditReads: true });

  it('are in the audit with their query', async () => {
    const auditor = await api().signIn(['audit:read', 'tasks:read']);
    const { admin } = api();
    const id = (await admin.client.post('/tasks', plainTask(admin.id))).textAt('id');
    await auditor.client.get(`/tasks/${id}`);
    await auditor.client.get(`/tasks/${id}/history`);
    await auditor.client.get(`/tasks/${id}?as_of=${new Date(api().clock.now()).toISOString()}`);
    await auditor.client.get(`/streams?prefix=task-`);
    await auditor.client.get(`/streams/task-${id}`);
    const items = await auditOf(api(), auditor, `actor=${auditor.id}&type=AuditRead`);
    // These requests are recorded as well, before or after the view was read.
    const others = items.filter(({ action }) => action !== 'GET /audit');
    expect(others.map(({ action, outcome }) => `${outcome} ${action}`)).to.deep.equal([
      'done GET /streams/{stream}',
      'done GET /streams',
      'done GET /tasks/{id}',
      'done GET /tasks/{id}/history',
    ]);
    const read = await auditor.client.get(`/streams/${others[0]?.stream}?direction=backwards`);
    const asked = (read.at('items') as { data: { asked: object } }[]).map(({ data }) => data.asked);
    expect(asked).to.deep.include({ stream: `task-${id}`, direction: 'forwards', limit: '50' });
  });

  it('are refused if they cannot be recorded', async () => {
    const auditor = await api().signIn(['audit:read']);
    api().store.failNext('reads-');
    const answer = await auditor.client.get('/audit');
    expect(answer.status).to.equal(503);
  });
});

describe('hidden fields of events', () => {
  it('include every field that could reveal a secret', () => {
    /** Similar names that are not secret: a request's kind, masked arguments, a valid token, a signing secret, a used one. */
    const harmless = [
      'CommandReceived.request_hash',
      'RunStepCompleted.arguments_hash',
      'RunStepSuspended.arguments_hash',
      'SecretUsed.secret_id',
      'SecretUsed.secret_version',
      'SessionStarted.credentials_revision',
      'WebhookDelivered.secret_version',
      'WebhookFailed.secret_version',
    ];
    const sounding = Object.entries(catalogue).flatMap(([type, { schema }]) =>
      Object.keys(schema.properties)
        .filter((field) => /secret|hash|token|password|credential|sealed|data_key/.test(field))
        .map((field) => `${type}.${field}`),
    );
    const hidden = Object.entries(hiddenFields).flatMap(([type, fields]) =>
      fields.map((field) => `${type}.${field}`),
    );
    expect(sounding).to.have.members([...hidden, ...harmless]);
  });
});

/** Actions of the service itself, all at the same instant. */
const correctionsOf = (at: number, count: number, correlation = newId(0)): readonly NewEvent[] =>
  Array.from({ length: count }, () => ({
    id: newId(0),
    type: 'NextFireCorrected',
    data: { next_fire_at: null, tz_version: '2026a', task_revision: 0, fire_count: 0 },
    metadata: {
      actor: 'service',
      source: 'scheduler',
      commandId: newId(0),
      $correlationId: correlation,
      schemaVersion: '1',
      occurredAt: new Date(at).toISOString(),
    },
  }));
