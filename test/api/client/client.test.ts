import { expect } from 'chai';
import { endpoints } from '../../../api/app.ts';
import {
  ApiError,
  createClient,
  type Client,
  type ServerSentEvent,
} from '../../../api/client/client.ts';
import { newId } from '../../../domain/ids.ts';
import { endpointAt } from '../../support/response-check.ts';
import { failure as failureOf } from '../../projections/recorded.ts';
import { RunningApi, useRunningApi } from '../../support/running-api.ts';
import { eventually } from '../../support/signals.ts';
import { plainTask } from '../plain-task.ts';

describe('the typed client', () => {
  const api = useRunningApi();
  const connect = (more: Partial<Parameters<typeof createClient>[0]> = {}): Client =>
    createClient({ baseUrl: api().url, token: api().admin.client.token ?? '', ...more });
  const failure = (call: Promise<unknown>): Promise<unknown> =>
    call.then(
      () => null,
      (error: unknown) => error,
    );

  it('creates a task, runs it, and reads its results', async () => {
    const client = connect();
    const created = await client.tasks.create(plainTask(api().admin.id));
    expect(created).to.include({ status: 201, revision: 0 });
    const { id } = created.data;
    const asked = await client.tasks.runNow(id);
    const after = asked.position ?? '';
    const run = await client.runs.get(asked.data.details.run_id, { after });
    expect(run.data).to.include({ task_id: id, state: 'queued' });
    const { data: page } = await client.runs.list({ task_id: id, limit: 1, after });
    expect(page).to.include({ total: 1, has_more: false });
    const { data: task } = await client.tasks.get(id);
    expect(task.title).to.equal(created.data.title);
  });

  it('runs a task with params, and retries it with others', async () => {
    const client = connect();
    const { id } = (await client.tasks.create(plainTask(api().admin.id))).data;
    const asked = await client.tasks.runNow(id, { params: { limit: 5 } });
    const runId = asked.data.details.run_id;
    const run = await client.runs.get(runId, { after: asked.position ?? '' });
    expect(run.data.params).to.deep.equal({ limit: 5 });
    const started_at = '2026-03-01T09:00:00.000Z';
    const data = failureOf({ task_id: id, started_at });
    const leased = { worker: 'w', attempt: 1, leased_until: started_at };
    await api().append(`run-${runId}`, [
      { type: 'RunStarted', data: leased },
      { type: 'RunFailed', data },
    ]);
    const retried = await client.runs.retry(runId, { from: 'start', params: { shop: 'b' } });
    const after = retried.position ?? '';
    const retry = await client.runs.get(retried.data.details.run_id, { after });
    expect(retry.data.params).to.deep.equal({ limit: 5, shop: 'b' });
  });

  it('renews its token before it expires', async () => {
    const short = await RunningApi.start({ accessTokenSeconds: 7 });
    try {
      const admin = createClient({ baseUrl: short.url, token: short.admin.client.token ?? '' });
      const agent = (await admin.agents.create({ name: 'self', scopes: ['tasks:read'] })).data;
      const { agent_secret } = (await admin.agents.setCredentials(agent.id)).data;
      const statusesUntilRenewal = async (): Promise<readonly number[]> => {
        const statuses = new Set<number>();
        let logins = 0;
        const client = createClient({
          baseUrl: short.url,
          credentials: { agentId: agent.id, agentSecret: agent_secret },
          fetch: async (url, init) => {
            const response = await fetch(url, init);
            if (response.url.endsWith('/agents/auth/token')) logins += 1;
            statuses.add(response.status);
            return response;
          },
        });
        await eventually(async () => {
          await client.tasks.list();
          return logins >= 2;
        });
        return [...statuses];
      };
      // A token can expire while a busy machine stalls, but hardly each time.
      let statuses: readonly number[] = [];
      for (
        let times = 0;
        times < 3 && !(statuses.length === 1 && statuses[0] === 200);
        times += 1
      ) {
        statuses = await statusesUntilRenewal();
      }
      expect(statuses).to.deep.equal([200]);
    } finally {
      await short.close();
    }
  });

  it('logs in by itself, and again when its token is no longer valid', async () => {
    const { admin } = api();
    const agent = (await connect().agents.create({ name: 'self', scopes: ['tasks:read'] })).data;
    const { agent_secret } = (await connect().agents.setCredentials(agent.id)).data;
    const credentials = { agentId: agent.id, agentSecret: agent_secret };
    const tokens: string[] = [];
    const client = createClient({
      baseUrl: api().url,
      credentials,
      fetch: (url, init) => {
        tokens.push(new Headers(init?.headers).get('authorization') ?? '');
        return fetch(url, init);
      },
    });
    await Promise.all([client.tasks.list(), client.events.topics()]);
    expect(tokens).to.have.lengthOf(3);
    const held = tokens.at(-1)?.replace('Bearer ', '') ?? '';
    await connect().tokens.revoke({ token: held });
    expect((await client.tasks.list()).status).to.equal(200);
    await admin.client.delete(`/agents/${agent.id}`);
    expect(await failure(client.tasks.list())).to.include({ status: 401, code: 'unauthorized' });
  });

  it('logs in once if several calls receive the same refusal', async () => {
    const agent = (await connect().agents.create({ name: 'many', scopes: ['tasks:read'] })).data;
    const { agent_secret } = (await connect().agents.setCredentials(agent.id)).data;
    let signIns = 0;
    let signedIn = (): void => {};
    const first = new Promise<void>((resolve) => (signedIn = resolve));
    const client = createClient({
      baseUrl: api().url,
      token: 'expired',
      credentials: { agentId: agent.id, agentSecret: agent_secret },
      fetch: async (url, init) => {
        const { url: asked } = new Request(url);
        const isSignIn = asked.endsWith('/agents/auth/token');
        if (isSignIn) signIns += 1;
        const answer = await fetch(url, init);
        // The second call receives its refusal after the first has a new token.
        if (asked.includes('/topics') && answer.status === 401) await first;
        if (asked.includes('/tasks') && answer.status === 200) signedIn();
        return answer;
      },
    });
    const answers = await Promise.all([client.tasks.list(), client.events.topics()]);
    expect(answers.map(({ status }) => status)).to.eql([200, 200]);
    expect(signIns).to.equal(1);
  });

  it('ends a call at once if it is aborted during login', async () => {
    const leaving = new AbortController();
    const client = createClient({
      baseUrl: api().url,
      credentials: { agentId: newId(0), agentSecret: 'not answered to' },
      fetch: () => new Promise(() => leaving.abort(new Error('called off'))),
    });
    const ended = await failure(client.tasks.list({}, { signal: leaving.signal }));
    expect(ended).to.be.an('error').with.property('message', 'called off');
  });

  it('reports no number of seconds if Retry-After is a date', async () => {
    const headers = { 'retry-after': 'Fri, 31 Dec 2027 23:59:59 GMT' };
    const client = connect({
      fetch: () => Promise.resolve(new Response('busy', { status: 503, headers })),
    });
    expect(await failure(client.tasks.list())).to.include({ status: 503, retryAfter: null });
  });

  it('requests credentials when it needs them', async () => {
    const { id: agentId } = (await connect().agents.create({ name: 'asked', scopes: [] })).data;
    const agentSecret = (await connect().agents.setCredentials(agentId)).data.agent_secret;
    let asked = 0;
    const credentials = () => {
      asked += 1;
      return { agentId, agentSecret };
    };
    const client = createClient({ baseUrl: api().url, credentials });
    await client.request({ method: 'GET', path: '/openapi.json', open: true });
    expect(asked).to.equal(0);
    const [, claims = ''] = ((await client.token()) ?? '').split('.');
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).to.include({ sub: agentId });
    expect(await failure(client.tasks.list())).to.include({ status: 403 });
    expect(asked).to.equal(1);
    const wrong = createClient({ baseUrl: api().url, credentials: () => ({ agentId }) });
    expect(await failure(wrong.tasks.list())).to.include({ status: 401 });
  });

  it('follows a live path, and continues after the last received event', async () => {
    const owner = await api().signIn(['tasks:write', 'tasks:read', 'runs:read']);
    const client = connect({ token: owner.client.token ?? '' });
    const { id } = (await client.tasks.create(plainTask(owner.id))).data;
    const first = client.live({ path: `/tasks/${id}/live` });
    const started = (await first.next()).value as ServerSentEvent;
    expect(started.event).to.equal('live.started');
    const run = (await client.tasks.runNow(id)).data.details.run_id;
    const queued = (await first.next()).value as ServerSentEvent;
    expect(queued.event).to.equal('run.requested');
    expect(queued.data).to.include(run);
    await first.return(undefined);
    const again = client.live({
      path: '/runs/live',
      query: { task_id: id },
      lastEventId: started.id,
    });
    await again.next();
    expect(((await again.next()).value as ServerSentEvent).id).to.equal(queued.id);
    await again.return(undefined);
    const refused = await failure(client.live({ path: '/audit/live' }).next());
    expect(refused).to.include({ status: 403, code: 'forbidden' });
  });

  it('returns an error status as a response if the caller asks for it', async () => {
    const request = { method: 'GET', path: `/tasks/${newId(0)}`, also: [404] } as const;
    expect((await connect().request(request)).status).to.equal(404);
  });

  it('rejects an id that would disappear from a URL', () => {
    const client = createClient({ baseUrl: 'http://service', token: 't' });
    for (const id of ['', '.', '..']) {
      expect(() => client.tasks.get(id), id).to.throw(RangeError, `"${id}" is not an id`);
    }
  });

  it('distinguishes a refusal from other errors', async () => {
    const refusal = await failure(connect().tasks.get(newId(0)));
    expect(refusal).to.be.instanceOf(ApiError).and.include({ status: 404, code: 'not_found' });
    expect((refusal as ApiError).requestId).to.be.a('string');
    const wrong = await failure(connect().tasks.create({ ...plainTask(newId(0)), priority: 99 }));
    expect((wrong as ApiError).details).to.include({ field: 'priority' });
    const nobody = connect({ baseUrl: 'http://127.0.0.1:1' });
    expect(await failure(nobody.health.report())).to.be.instanceOf(TypeError);
  });

  it('sends keys, revisions and reasons', async () => {
    const client = connect({ reason: 'für Ärzte' });
    const body = plainTask(api().admin.id);
    const first = await client.tasks.create(body, { idempotencyKey: 'once' });
    const again = await client.tasks.create(body, { idempotencyKey: 'once' });
    expect(again.data.id).to.equal(first.data.id);
    expect(again.headers.get('idempotent-replayed')).to.equal('true');
    const { id } = first.data;
    const changed = await client.tasks.update(id, { title: 'New' }, { ifMatch: 0 });
    expect(changed.revision).to.equal(1);
    const late = await failure(client.tasks.update(id, { title: 'Newer' }, { ifMatch: 0 }));
    expect(late).to.include({ status: 412, code: 'precondition_failed' });
    const [, updated] = await api().store.readStream(`task-${id}`);
    expect(updated?.metadata.reason).to.equal('für Ärzte');
  });

  it('has a method for each endpoint of the service', async () => {
    const asked: { method: string; path: string }[] = [];
    const client = createClient({
      baseUrl: 'http://service',
      token: 't',
      fetch: async (url, init) => {
        asked.push({ method: init?.method ?? '', path: new URL(new Request(url).url).pathname });
        return new Response('{}');
      },
    });
    const { request: _request, ...groups } = client;
    for (const methods of Object.values(groups)) {
      for (const method of Object.values(methods) as ((...given: unknown[]) => unknown)[]) {
        await method(newId(0), {});
      }
    }
    const unknown = asked.filter(({ method, path }) => endpointAt(method, path) === null);
    expect(unknown).to.deep.equal([]);
    expect(new Set(asked.map(({ method, path }) => `${method} ${path}`)).size).to.equal(
      asked.length,
    );
    expect(asked.length).to.be.greaterThan(endpoints.length / 2);
  });
});
