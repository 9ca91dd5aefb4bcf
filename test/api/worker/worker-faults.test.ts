import { expect } from 'chai';
import { ApiError } from '../../../api/client/client.ts';
import { Worker, type Job } from '../../../api/worker/worker.ts';
import { deferred, eventually, Signal } from '../../support/signals.ts';
import { fetchBut, useWorkerWorld } from './worker-world.ts';

const notFound = { error: 'not_found', message: 'no such worker', details: {}, request_id: 'r' };

describe('a worker in TypeScript, when something fails', function () {
  this.timeout(60_000);
  const world = useWorkerWorld();

  const workers = async (state: string): Promise<readonly Readonly<Record<string, unknown>>[]> => {
    const { json } = await world().admin.get(`/workers?state=${state}&limit=100`);
    return json['items'] as readonly Readonly<Record<string, unknown>>[];
  };

  it('says why it cannot start', async () => {
    const reject = async (options: object): Promise<string> => {
      const started = world().worker({ 'a.tool': () => 1 }, options);
      return started.then(
        () => 'it started',
        (error: unknown) => (error instanceof ApiError ? error.message : String(error)),
      );
    };
    expect(await reject({ agentSecret: 'wrong' })).to.include('POST /agents/auth/token: ');
    expect(await reject({ slots: 0 })).to.match(/slots.*at least 1/);
    const echo = { echo: { description: '', schema: {}, run: () => 1 } };
    expect(await reject({ tools: echo })).to.include('echo is a tool of the service');
  });

  it('waits for a service that is not running yet', async () => {
    let failures = 0;
    const fetch = fetchBut((path) => {
      if (path !== '/workers' || failures === 2) return Promise.resolve(undefined);
      failures += 1;
      return Promise.reject(new TypeError('fetch failed', { cause: new Error('refused') }));
    });
    await world().worker({ late: () => 'here' }, { fetch });
    const said = world().said.values.filter(({ message }) =>
      /^(could not|can) register/.test(message),
    );
    expect(said.map(({ level, message, fields }) => [level, message, fields])).to.deep.equal([
      ['warn', 'could not register; retrying', { error: 'fetch failed: refused' }],
      ['debug', 'could not register; retrying', { times: 2, error: 'fetch failed: refused' }],
      ['info', 'can register again', { times: 2 }],
    ]);
    expect(await world().result(await world().run({ uses: 'late' }))).to.equal('here');
  });

  it('registers again if the service does not know it', async () => {
    let left = 1;
    const fetch = fetchBut(async (path) => {
      if (!path.endsWith('/jobs') || left === 0) return undefined;
      left -= 1;
      return Response.json(notFound, { status: 404 });
    });
    const worker = await world().worker({ known: () => 1 }, { fetch });
    const first = worker.id;
    expect(await world().result(await world().run({ uses: 'known' }))).to.equal(1);
    expect(worker.id).to.be.a('string').and.not.equal(first);
  });

  it('asks a stopping service again when it said to, and then does its jobs', async () => {
    const asked: number[] = [];
    const fetch = fetchBut(async (path) => {
      if (!path.endsWith('/jobs')) return undefined;
      asked.push(performance.now());
      if (asked.length > 2) return undefined;
      const body = { ...notFound, error: 'unavailable', message: 'the service is stopping' };
      return Response.json(body, { status: 503, headers: { 'retry-after': '1' } });
    });
    await world().worker({ patient: () => 'done' }, { fetch });
    expect(await world().result(await world().run({ uses: 'patient' }))).to.equal('done');
    const [first = 0, second = 0, third = 0] = asked;
    expect(second - first).to.be.at.least(990);
    expect(third - second).to.be.at.least(990);
  });

  it('keeps results until they are accepted', async () => {
    const calls: number[] = [];
    const fetch = fetchBut((path) => {
      if (!path.endsWith('/results')) return Promise.resolve(undefined);
      calls.push(calls.length);
      if (calls.length === 1) return Promise.reject(new TypeError('fetch failed'));
      if (calls.length === 2) return Promise.resolve(new Response('starting', { status: 503 }));
      if (calls.length === 3) return Promise.resolve(Response.json(notFound, { status: 404 }));
      return Promise.resolve(undefined);
    });
    await world().worker({ kept: () => 'kept' }, { fetch });
    expect(await world().result(await world().run({ uses: 'kept' }))).to.equal('kept');
    expect(calls).to.have.lengthOf(4);
  });

  it('sends results one by one if one of them makes the request fail', async () => {
    const sizes: number[] = [];
    const go = deferred();
    const begun = new Signal<unknown>('started jobs');
    const fetch = fetchBut(async (path, init) => {
      if (!path.endsWith('/results')) return undefined;
      const { results } = JSON.parse(init?.body as string) as { results: { result?: unknown }[] };
      sizes.push(results.length);
      if (!results.some(({ result }) => result === 1)) return undefined;
      return Response.json(
        { ...notFound, error: 'bad_request', message: 'spoiled' },
        { status: 400 },
      );
    });
    const spoiled = async ({ n }: Readonly<Record<string, unknown>>): Promise<unknown> => {
      begun.send(n);
      await go.promise;
      return n;
    };
    await world().worker({ spoiled }, { fetch });
    const runs: string[] = [];
    for (const n of [0, 1, 2]) runs.push(await world().run({ uses: 'spoiled', with: { n } }));
    await begun.count(3);
    go.resolve();
    const ended = await Promise.all(runs.map((run) => world().ended(run)));
    expect(ended.map(({ state }) => state)).to.deep.equal(['succeeded', 'failed', 'succeeded']);
    expect(String(ended[1]?.['error']))
      .to.include('the service rejected the result')
      .and.include('spoiled');
    expect(sizes).to.deep.equal([3, 1, 1, 1, 1]);
  });

  it('stops when another worker takes its name, and still delivers its results', async () => {
    const go = deferred();
    const begun = new Signal<string>('started jobs');
    const held = async (_args: unknown, { id }: Job): Promise<string> => {
      begun.send(id);
      await go.promise;
      return 'of the first';
    };
    const first = await world().worker({ named: held }, { name: 'the only one' });
    const run = await world().run({ uses: 'named' });
    await begun.wait();
    const other = { 'named.otherwise': () => 'of the second' };
    const second = await world().worker(other, { name: 'the only one' });
    await world().said.wait(({ message }) => message === 'worker was replaced; it stops');
    go.resolve();
    await first.stopped;
    expect(await world().result(run)).to.equal('of the first');
    expect(await world().result(await world().run({ uses: 'named.otherwise' }))).to.equal(
      'of the second',
    );
    expect((await workers('active')).map(({ id }) => id)).to.deep.equal([second.id]);
  });

  it('stops when an operator drains it', async () => {
    const worker = await world().worker({ drained: () => 1 });
    const { agentId, agentSecret } = world().agent;
    const token = await world().admin.post('/agents/auth/token', {
      agent_id: agentId,
      agent_secret: agentSecret,
    });
    const own = world().admin.as(token.textAt('access_token'));
    expect((await own.delete(`/workers/${worker.id}`)).status).to.equal(200);
    await worker.stopped;
  });

  it('finishes its jobs before it stops, and takes no more', async () => {
    const go = deferred();
    const begun = new Signal<string>('started jobs');
    const held = async (_args: unknown, { id, log }: Job): Promise<string> => {
      begun.send(id);
      await go.promise;
      log('the last line');
      return 'finished';
    };
    const worker = await world().worker({ last: held });
    const run = await world().run({ uses: 'last' });
    await begun.wait();
    const stopped = worker.stop();
    await world().admin.get('/workers');
    go.resolve();
    await stopped;
    expect(await world().result(run)).to.equal('finished');
    expect((await world().read(run)).text).to.include('the last line');
    await eventually(async () => void expect(await workers('active')).to.deep.equal([]));
    const next = await world().run({ uses: 'last' });
    await world().worker({ last: () => 'by the next' });
    expect(await world().result(next)).to.equal('by the next');
    expect(begun.values).to.have.lengthOf(1);
  });

  it('can be started only once', async () => {
    const worker = new Worker({ url: world().url, ...world().agent, tools: {}, log: () => {} });
    await worker.stop();
    const again = await worker.start().catch((error: unknown) => String(error));
    expect(again).to.equal('Error: a worker can only be started once; create another one');
  });
});

describe('a worker in TypeScript, with short leases', function () {
  this.timeout(60_000);
  const world = useWorkerWorld({ SVC_JOB_LEASE_SECONDS: '3' });

  it('stops a job whose lease is lost, and another worker gets it with the same key', async () => {
    const keys = new Signal<string>('keys');
    const reasons = new Signal<unknown>('reasons');
    const fetch = fetchBut((path) =>
      path.endsWith('/heartbeat')
        ? Promise.reject(new TypeError('fetch failed'))
        : Promise.resolve(undefined),
    );
    const first = async (_args: unknown, job: Job): Promise<string> => {
      keys.send(job.idempotencyKey);
      await new Promise((ended) => job.signal.addEventListener('abort', ended));
      reasons.send(job.signal.reason);
      return 'too late';
    };
    const cutOff = await world().worker({ lost: first }, { fetch });
    const run = await world().run({ uses: 'lost' });
    await keys.wait();
    await world().worker({
      lost: (_args, job) => {
        keys.send(job.idempotencyKey);
        return 'by another';
      },
    });
    expect(await reasons.wait()).to.include({ why: 'lease_lost' });
    expect(await world().result(run)).to.equal('by another');
    expect(new Set(keys.values)).to.deep.equal(new Set([`${run}:step_0`]));
    await cutOff.stop();
    expect(world().said.values.map(({ message }) => message)).to.include.members([
      'lost a job: could not keep its lease',
      'dropped the result of a job',
    ]);
  });

  it('leaves jobs that do not end in time to others', async () => {
    const reasons = new Signal<unknown>('reasons');
    const begun = new Signal<string>('started jobs');
    const endless = async (_args: unknown, job: Job): Promise<never> => {
      begun.send(job.id);
      await new Promise((ended) => job.signal.addEventListener('abort', ended));
      reasons.send(job.signal.reason);
      throw job.signal.reason;
    };
    const worker = await world().worker({ left: endless }, { shutdownSeconds: 0 });
    const run = await world().run({ uses: 'left' });
    await begun.wait();
    await worker.stop();
    expect(reasons.values).to.have.lengthOf(1);
    expect(reasons.values[0]).to.include({ why: 'worker_stopped' });
    await world().worker({ left: () => 'done by another' });
    expect(await world().result(run)).to.equal('done by another');
  });
});
