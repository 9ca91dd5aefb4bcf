import { expect } from 'chai';
import { RequestCounts } from '../../../api/access/request-counts.ts';
import { silent } from '../../../observability/telemetry.ts';
import { CoordinationError, type Coordination } from '../../../scheduler/coordination.ts';
import type { ReceivedResponse } from '../../support/api-client.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';

const START = 1_800_000_000_000;

describe('the request limit', () => {
  const api = useRunningApi({ rateLimit: 5, rateLimitWindowSeconds: 60 });
  const remaining = (answer: ReceivedResponse): number =>
    Number(answer.header('X-RateLimit-Remaining'));
  // Before each test, waits for a window that does not end during it.
  beforeEach(() => api().clock.shift(60_001 - (api().clock.now() % 60_000)));

  it('is stated in every response except health checks, even in refusals', async () => {
    const { client } = await api().signIn(['tasks:read']);
    const answers = [
      await client.get('/tasks'),
      await client.get('/nowhere'),
      await client.get('/runs'),
      await client.send('OPTIONS', '/tasks'),
    ];
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 404, 403, 204]);
    expect(answers.map(remaining)).to.deep.equal([4, 3, 2, 1]);
    for (const answer of answers) {
      expect(answer.header('X-RateLimit-Limit')).to.equal('5');
      const reset = Number(answer.header('X-RateLimit-Reset')) * 1000 - api().clock.now();
      expect(reset).to.be.within(-1000, 61_000);
    }
    for (const path of ['/health', '/health/live', '/health/ready']) {
      expect((await client.get(path)).headers).to.not.have.property('x-ratelimit-limit');
    }
    expect(remaining(await client.get('/tasks'))).to.equal(0);
  });

  it('refuses further requests before anything else until the window ends', async () => {
    const { client } = await api().signIn([]);
    for (let times = 0; times < 5; times += 1) await client.get('/nowhere');
    const refused = [
      await client.get('/nowhere'),
      await client.get('/tasks'),
      await client.post('/tasks', undefined, { raw: '{' }),
      await client.get(`/tasks?search=${'x'.repeat(9000)}`),
    ];
    for (const answer of refused) {
      expect(answer.status, answer.text).to.equal(429);
      expect(answer.at('error')).to.equal('rate_limit_exceeded');
      expect(answer.at('details')).to.include({ limit: 5, window: '60s' });
      const wait = Date.parse(answer.textAt('details.reset_at')) - api().clock.now();
      expect(wait).to.be.within(0, 60_000);
      expect(Number(answer.header('Retry-After'))).to.be.within(1, 60);
      expect(remaining(answer)).to.equal(0);
    }
    expect((await client.get('/health/live')).status).to.equal(200);
    api().clock.shift(60_000);
    expect((await client.get('/nowhere')).status).to.equal(404);
  });

  it('counts by agent, and by address for requests without a valid token', async () => {
    const one = await api().signIn([]);
    const other = await api().signIn([]);
    expect(remaining(await one.client.get('/nowhere'))).to.equal(4);
    expect(remaining(await other.client.get('/nowhere'))).to.equal(4);
    const nobody = one.client.as(null);
    const before = remaining(await nobody.get('/nowhere'));
    const bad = await nobody.get('/nowhere', { token: 'nonsense' });
    expect(remaining(bad)).to.equal(before - 1);
    // An ended session belongs to nobody: a holder of its token cannot use up the agent's share.
    await one.client.post('/agents/auth/revoke', { token: one.client.token });
    expect(remaining(await one.client.get('/nowhere'))).to.equal(before - 2);
    expect(remaining(await other.client.get('/nowhere'))).to.equal(3);
  });
});

describe('the disabled request limit', () => {
  const api = useRunningApi({ rateLimit: 0 });

  it('is not stated in responses', async () => {
    const answer = await api().admin.client.get('/tasks');
    expect(answer.status).to.equal(200);
    expect(answer.headers).to.not.have.property('x-ratelimit-limit');
  });
});

describe('the request counts', () => {
  class SharedCounter {
    readonly sums = new Map<string, number>();
    calls = 0;
    away = false;
    /** How far its clock is ahead of the processes' clocks. */
    ahead = 0;
    readonly clock: VirtualClock;

    constructor(clock: VirtualClock) {
      this.clock = clock;
    }

    /** The only part of the port that is used. */
    get port(): Coordination {
      return { count: this.count } as unknown as Coordination;
    }

    readonly count: Coordination['count'] = async (name, by, window) => {
      this.calls += 1;
      if (this.away) throw new CoordinationError('away');
      const now = this.clock.now() + this.ahead;
      const key = `${name} ${Math.floor(now / window)}`;
      const sum = (this.sums.get(key) ?? 0) + by;
      this.sums.set(key, sum);
      return { sum, remaining: window - (now % window) };
    };
  }
  const setUp = () => {
    const clock = new VirtualClock(START);
    const shared = new SharedCounter(clock);
    const process = () =>
      new RequestCounts({
        coordination: shared.port,
        clock,
        failures: silent.failures,
        window: 60_000,
      });
    const hits = (counts: RequestCounts, times: number, key = 'agent a'): number => {
      let total = 0;
      for (let time = 0; time < times; time += 1) total = counts.increment(key).totalHits;
      return total;
    };
    return { clock, shared, one: process(), other: process(), hits };
  };

  it('are shared by all processes within a second, with one store call', async () => {
    const { clock, shared, one, other, hits } = setUp();
    expect(hits(one, 30)).to.equal(30);
    expect(hits(other, 12)).to.equal(12);
    expect(shared.calls).to.equal(0);
    await clock.advance(1000);
    expect(shared.calls).to.equal(2);
    expect(hits(one, 1)).to.be.within(31, 43);
    await clock.advance(1000);
    expect(hits(one, 1)).to.equal(44);
    await clock.advance(5000);
    expect(shared.calls).to.equal(4);
  });

  it('are current at the first request after a pause, not a second late', async () => {
    const { clock, one, other, hits } = setUp();
    hits(one, 12);
    await clock.advance(1000);
    hits(other, 1);
    await clock.advance(0);
    expect(hits(other, 1)).to.equal(14);
    await clock.advance(2500);
    hits(one, 1);
    await clock.advance(0);
    expect(hits(one, 1)).to.equal(16);
  });

  it('start at zero in each window', async () => {
    const { clock, one, hits } = setUp();
    hits(one, 30);
    await clock.advance(59_999);
    expect(hits(one, 1)).to.equal(31);
    await clock.advance(1);
    expect(hits(one, 1)).to.equal(1);
  });

  it("end with the store's window, even if its clock differs", async () => {
    const { clock, shared, one, hits } = setUp();
    shared.ahead = 20_000;
    hits(one, 30);
    await clock.advance(39_000);
    expect(hits(one, 1)).to.equal(31);
    await clock.advance(1000);
    expect(hits(one, 1)).to.equal(1);
    expect(one.increment('agent b').resetTime?.getTime()).to.equal(START + 100_000);
  });

  it('continue in each process during a store outage, and lose nothing', async () => {
    const { clock, shared, one, other, hits } = setUp();
    shared.away = true;
    hits(one, 10);
    hits(other, 10);
    await clock.advance(3000);
    expect(hits(one, 1)).to.equal(11);
    shared.away = false;
    await clock.advance(2000);
    hits(one, 1);
    await clock.advance(1000);
    expect(hits(one, 1)).to.equal(23);
  });

  it('drop the oldest of too many addresses, but no agent for them', () => {
    const { one, hits } = setUp();
    hits(one, 3, 'agent a');
    hits(one, 3, 'address first');
    for (let each = 0; each < 60_000; each += 1) one.increment(`address ${each}`);
    expect(hits(one, 1, 'agent a')).to.equal(4);
    expect(hits(one, 1, 'address first')).to.equal(1);
    expect(hits(one, 1, 'address 59999')).to.equal(2);
  });

  it('can be decreased by one, or reset', async () => {
    const { clock, one, hits } = setUp();
    hits(one, 5);
    one.decrement('agent a');
    expect(hits(one, 1)).to.equal(5);
    await clock.advance(1000);
    one.resetKey('agent a');
    await settle();
    expect(hits(one, 1)).to.equal(1);
  });
});
