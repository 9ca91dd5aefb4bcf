import { expect } from 'chai';
import { faultsOfKeys } from '../keys/key-harness.ts';
import { WaitsWorld } from './waits-world.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';

const second = 1000;

describe('a run that waits with a concurrency key', () => {
  let world: WaitsWorld;

  beforeEach(async () => {
    world = await WaitsWorld.open();
  });
  afterEach(() => world.close());

  const nap = (release_key: boolean, seconds = 60, id = 'nap'): object => {
    return { id, uses: 'sleep', with: { seconds }, release_key };
  };
  const held = { id: 'held', uses: 'hold', timeout_seconds: 86_400 };

  /** The run `first` waits and then holds the key, which `second` wants in the meantime. */
  const two = async (
    pipeline: readonly object[],
    fields: Partial<TaskDefinition> = { concurrency_key: 'printer' },
  ): Promise<readonly [string, string]> => {
    await world.task('first', pipeline, fields);
    await world.task('second', [{ ...held, id: 'other' }], fields);
    const first = await world.request('first');
    await world.until(async () => (await world.run(first)).waits.length > 0);
    return [first, await world.request('second')];
  };

  const states = async (...runs: readonly string[]): Promise<readonly string[]> =>
    Promise.all(runs.map(async (id) => (await world.run(id)).state));

  const keyFaults = async (): Promise<readonly string[]> => {
    const log = (await world.world.events()).filter(({ type }) => !waitingTypes.has(type));
    return faultsOfKeys(log, 'concurrency', 1);
  };

  it('keeps the key', async () => {
    await world.start('a');
    const [first, other] = await two([nap(false)]);
    await world.clock.advance(59 * second);
    expect(await states(first, other)).to.deep.equal(['waiting', 'queued']);
    await world.untilEnded(first);
    await world.untilState(other, 'running');
  });

  it('gives it up if its step says so, and takes it again before it continues', async () => {
    await world.start('a');
    const [first, other] = await two([nap(true), held]);
    await world.untilState(other, 'running');
    expect(await states(first)).to.deep.equal(['waiting']);
    await world.clock.advance(90 * second);
    // Its time has come, but another run has the key.
    expect(await states(first, other)).to.deep.equal(['queued', 'running']);
    world.gates.get('other')?.resolve();
    await world.untilState(first, 'running');
    world.gates.get('held')?.resolve();
    expect((await world.untilEnded(first)).state).to.equal('succeeded');
    expect(await keyFaults()).to.deep.equal([]);
  });

  it('keeps it while any of its waits keeps it', async () => {
    await world.start('a');
    const group = { parallel: [nap(true, 30, 'one'), nap(false, 60, 'two')] };
    const [first, other] = await two([group]);
    await world.clock.advance(20 * second);
    expect(await states(first, other)).to.deep.equal(['waiting', 'queued']);
  });

  it('keeps the place that its overlap policy gives it', async () => {
    await world.start('a');
    const fields = { concurrency_key: 'printer', overlap_policy: 'queue' } as const;
    await world.task('t', [nap(true)], fields);
    const first = await world.request('t');
    await world.untilState(first, 'waiting');
    const next = await world.request('t');
    await world.clock.advance(20 * second);
    expect(await states(first, next)).to.deep.equal(['waiting', 'queued']);
    await world.untilEnded(first);
    await world.untilState(next, 'waiting');
  });

  for (const when of ['before', 'after'] as const) {
    for (const type of ['RunStepSuspended', 'RunReleased', 'KeyReleased', 'RunStepResumed']) {
      it(`loses neither run nor key when its process dies ${when} ${type} is written`, async () => {
        await world.start('a');
        await world.start('b');
        let died = '';
        for (const process of world.processes) {
          process.dieAt(when, (_stream, events) => {
            const fits = died === '' && events.some((event) => event.type === type);
            if (fits) died = process.id;
            return fits;
          });
        }
        const [run, other] = await two([nap(true, 300), { id: 'last', uses: 'echo' }]);
        await world.untilState(other, 'running');
        expect(await states(run)).to.deep.equal(['waiting']);
        world.gates.get('other')?.resolve();
        await world.untilEnded(run, 400_000);
        await world.untilEnded(other);
        expect(died).to.not.equal('');
        expect(await states(run, other)).to.deep.equal(['succeeded', 'succeeded']);
        expect((await world.resumptionsOf(run)).map(({ by }) => by.kind)).to.deep.equal(['timer']);
        expect(await keyFaults()).to.deep.equal([]);
      });
    }
  }
});

/** A run continues after these events, so they do not end its use of a key. */
const waitingTypes: ReadonlySet<string> = new Set(['RunStepSuspended', 'RunStepResumed']);
