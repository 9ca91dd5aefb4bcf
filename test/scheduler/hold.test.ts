import { expect } from 'chai';
import { holdCommand, releaseCommand } from '../../domain/operators/operations.ts';
import type { MisfirePolicy } from '../../domain/vocabulary.ts';
import { Hold } from '../../scheduler/hold.ts';
import { minute, World } from './scheduler-world.ts';

const hour = 60 * minute;

describe('the hold', () => {
  let world: World;
  beforeEach(async () => {
    world = await World.open();
  });
  afterEach(() => world.close());

  async function holdFor(milliseconds: number, missed: MisfirePolicy | null): Promise<void> {
    await holdCommand(world.store, 'maintenance', world.context());
    await world.idle();
    await world.clock.advance(milliseconds);
    await releaseCommand(world.store, missed, world.context());
    await world.idle();
  }

  it('prevents all fires in each process until it is released', async () => {
    await world.createTask('t', { misfire_policy: 'skip', misfire_grace_seconds: 30 });
    await world.start('one', { held: true });
    await world.start('two', { held: true });
    await world.clock.advance(2 * minute);
    expect((await world.outcome('t')).fired).to.have.length(2);
    await holdCommand(world.store, 'maintenance', world.context());
    await world.idle();
    await world.clock.advance(hour);
    expect((await world.outcome('t')).fired).to.have.length(2);
    await releaseCommand(world.store, null, world.context());
    await world.idle();
    await world.clock.advance(minute);
    const { fired, skipped, requested } = await world.outcome('t');
    // The fire at the time of the release is within its grace period.
    expect(fired).to.have.length(4);
    expect(requested).to.deep.equal(fired);
    expect(skipped).to.deep.equal(['missed 59']);
  });

  it('applies to a process that starts during it', async () => {
    await world.createTask('t');
    await holdCommand(world.store, 'maintenance', world.context());
    await world.start('one', { held: true });
    await world.clock.advance(hour);
    expect((await world.outcome('t')).fired).to.deep.equal([]);
    await releaseCommand(world.store, null, world.context());
    await world.idle();
    await world.clock.advance(minute);
    expect((await world.outcome('t')).fired).not.to.deep.equal([]);
  });

  const policies = [
    ['skip', 0, ['missed 60']],
    ['latest', 1, ['missed 59']],
    ['all', 60, []],
  ] as const;
  for (const [missed, runs, skips] of policies) {
    it(`decides held fires as the release orders: ${missed}`, async () => {
      const own = missed === 'skip' ? 'all' : 'skip';
      await world.createTask('t', { misfire_policy: own, misfire_grace_seconds: 600 });
      await world.start('one', { held: true });
      await holdFor(hour, missed);
      const { fired, skipped, requested } = await world.outcome('t');
      expect(fired).to.have.length(runs);
      expect(requested).to.deep.equal(fired);
      expect(skipped).to.deep.equal(skips);
      await world.clock.advance(5 * minute);
      expect((await world.outcome('t')).fired).to.have.length(runs + 5);
    });
  }

  it("applies the release's order in a scheduler that starts an hour later", async () => {
    await world.createTask('t', { misfire_policy: 'all', misfire_grace_seconds: 0 });
    await holdFor(hour, 'skip');
    await world.clock.advance(hour);
    await world.start('one', { held: true });
    const { fired, skipped } = await world.outcome('t');
    expect(skipped).to.deep.equal(['missed 60']);
    expect(fired).to.have.length(60);
  });

  it('begins once and ends once', async () => {
    const { store } = world;
    const refusalOf = (command: Promise<unknown>): Promise<unknown> =>
      command.then(
        () => null,
        (error: unknown) => error,
      );
    expect(await refusalOf(releaseCommand(store, null, world.context()))).to.have.property(
      'code',
      'STATE_CONFLICT',
    );
    await holdCommand(store, 'first', world.context());
    const refused = await refusalOf(holdCommand(store, 'second', world.context()));
    expect(refused).to.have.nested.property('details.reason', 'first');
    expect(refused).to.have.nested.property('details.by', 'agent-1');
  });

  it('is on until its state is known', () => {
    expect(new Hold(world.store).held).to.equal(true);
  });
});
