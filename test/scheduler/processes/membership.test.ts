import { expect } from 'chai';
import { silent, type Telemetry } from '../../../observability/telemetry.ts';
import { CoordinationError } from '../../../scheduler/coordination.ts';
import { Membership } from '../../../scheduler/processes/membership.ts';
import { collectingLines } from '../../support/reporting-to.ts';
import { World } from '../scheduler-world.ts';

const lease = 30_000;

describe('a member', () => {
  let world: World;
  let stop: AbortController;
  let running: Promise<void>[];
  /** How often each member has come alive. */
  let alive: Map<string, number>;

  beforeEach(async () => {
    world = await World.open();
    stop = new AbortController();
    running = [];
    alive = new Map();
  });

  afterEach(async () => {
    stop.abort();
    await Promise.all(running);
    await world.close();
  });

  const join = (
    id: string,
    roles: string[],
    signal = stop.signal,
    telemetry: Telemetry = silent,
  ): Membership => {
    const { coordination, clock } = world;
    const about = { roles };
    const onAlive = (): void => void alive.set(id, (alive.get(id) ?? 0) + 1);
    const member = new Membership({
      id,
      lease,
      about,
      onAlive,
      coordination,
      clock,
      telemetry,
    });
    running.push(member.run(signal));
    return member;
  };

  it('is alive after its first heartbeat, and reports that once', async () => {
    const one = join('one', ['worker']);
    expect(one.alive).to.equal(false);
    await world.clock.advance(lease);
    expect(one.alive).to.equal(true);
    expect(alive.get('one')).to.equal(1);
  });

  it('reports that it is alive even if it cannot list the others', async () => {
    const { coordination } = world;
    const look = coordination.alive.bind(coordination);
    let looks = 0;
    coordination.alive = () =>
      (looks += 1) === 1 ? Promise.reject(new CoordinationError('away')) : look();
    const one = join('one', ['worker']);
    await world.clock.advance(lease);
    expect(one.alive).to.equal(true);
    expect(alive.get('one')).to.equal(1);
  });

  it('knows the others by their roles', async () => {
    const one = join('one', ['worker', 'api']);
    join('two', ['worker']);
    join('three', ['api']);
    await world.clock.advance(lease / 3);
    expect([...one.withRole('worker')].toSorted()).to.deep.equal(['one', 'two']);
    expect([...one.withRole('api')].toSorted()).to.deep.equal(['one', 'three']);
    expect(one.withRole('scheduler')).to.deep.equal([]);
    expect(one.isAlive('two')).to.equal(true);
    expect(one.isAlive('nobody')).to.equal(false);
  });

  it('counts itself as gone if its heartbeat was not renewed in time, like the others', async () => {
    const one = join('one', ['worker']);
    const two = join('two', ['worker']);
    await world.clock.advance(1000);
    const heartbeat = world.coordination.heartbeat.bind(world.coordination);
    world.coordination.heartbeat = (id, about, ttl) =>
      id === 'one' ? Promise.reject(new Error('away')) : heartbeat(id, about, ttl);
    await world.clock.advance(lease + lease / 3);
    expect(one.alive).to.equal(false);
    expect(one.isAlive('one')).to.equal(false);
    expect(two.isAlive('one')).to.equal(false);
    world.coordination.heartbeat = heartbeat;
    await world.clock.advance(lease / 3);
    expect(one.alive).to.equal(true);
    expect(alive.get('one')).to.equal(2);
  });

  it('renews its heartbeat soon after the clock was set', async () => {
    const one = join('one', ['worker']);
    await world.clock.advance(1000);
    for (const by of [3_600_000, -3_600_000]) {
      world.clock.setTo(world.clock.now() + by);
      await world.clock.advance(2000);
      expect(one.alive).to.equal(true);
      const alive = await world.coordination.alive();
      expect(alive.map(({ id }) => id)).to.deep.equal(['one']);
    }
  });

  it('is not forgotten by the others before its heartbeat expires, even if the store has lost it', async () => {
    const one = join('one', ['worker']);
    join('two', ['worker']);
    await world.clock.advance(lease / 3 + 1000);
    const { forget } = world.coordination;
    await forget.call(world.coordination, 'two');
    const heartbeat = world.coordination.heartbeat.bind(world.coordination);
    world.coordination.heartbeat = (id, about, ttl) =>
      id === 'two' ? new Promise(() => {}) : heartbeat(id, about, ttl);
    await world.clock.advance(lease / 3);
    expect(one.isAlive('two')).to.equal(true);
    await world.clock.advance(lease);
    expect(one.isAlive('two')).to.equal(false);
    // The hanging call would keep the process alive.
    void running.pop();
  });

  it('lists live processes when an unknown process writes, once for each', async () => {
    const one = join('one', ['worker']);
    await world.clock.advance(1000);
    join('two', ['worker']);
    await world.clock.advance(1000);
    expect(one.withRole('worker')).to.deep.equal(['one']);
    let looks = 0;
    const alive = world.coordination.alive.bind(world.coordination);
    world.coordination.alive = () => {
      looks += 1;
      return alive();
    };
    for (const id of ['two', 'two', 'one', 'nobody']) one.noteWriter(id);
    await world.clock.advance(1);
    expect([...one.withRole('worker')].toSorted()).to.deep.equal(['one', 'two']);
    expect(looks).to.equal(1);
    for (let times = 0; times < 3; times += 1) {
      await world.clock.advance(1000);
      for (const id of ['nobody', 'two']) one.noteWriter(id);
    }
    expect(looks).to.equal(2);
  });

  it('reports until the next heartbeat that it could not list live processes', async () => {
    const lines: string[] = [];
    const telemetry = collectingLines(lines, () => world.clock.steady());
    const one = join('one', ['worker'], stop.signal, telemetry);
    await world.clock.advance(2000);
    const alive = world.coordination.alive.bind(world.coordination);
    world.coordination.alive = () => Promise.reject(new CoordinationError('away'));
    one.noteWriter('nobody');
    await world.clock.advance(1);
    expect(lines).to.deep.equal(['coordination store unavailable: away']);
    world.coordination.alive = alive;
    await world.clock.advance(lease / 3);
    expect(lines.slice(1)).to.deep.equal(['coordination store available again']);
  });

  it('leaves when it ends', async () => {
    const leaving = new AbortController();
    join('one', ['worker'], leaving.signal);
    await world.clock.advance(1000);
    expect(await world.coordination.alive()).to.have.lengthOf(1);
    leaving.abort();
    await Promise.all(running);
    expect(await world.coordination.alive()).to.deep.equal([]);
  });
});
