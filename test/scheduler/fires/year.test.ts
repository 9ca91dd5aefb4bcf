import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import { dueProjection } from '../../../projections/views/due.ts';
import { fleetOfAYear, YEAR, type Sailing } from './fleet-of-a-year.ts';
import { World, type SchedulerProcess } from '../scheduler-world.ts';
import { longVersions } from '../../support/left-out.ts';

const HOUR = 3_600_000;

/** `SVC_TEST_LONG=1`: runs the whole year; otherwise only until clocks have changed in both directions. */
const long = longVersions();
const END = long ? YEAR.to : Date.parse('2026-04-30T00:00:00Z');

/** How soon another process leads after one has died. Longer than in production, so that a year has few renewals. */
const lease = 2 * HOUR;

/** What happens to the scheduler's process during the year, and how long no process runs afterwards. */
const mishaps: readonly (readonly [at: string, how: 'stopped' | 'killed', away: number])[] = [
  ['2026-02-10T11:59:30Z', 'stopped', 0],
  // In the nights in which clocks change.
  ['2026-03-08T06:59:00Z', 'stopped', 3 * HOUR],
  ['2026-03-29T00:20:00Z', 'killed', 1 * HOUR],
  ['2026-04-04T14:50:00Z', 'killed', 0],
  ['2026-08-01T00:00:00Z', 'stopped', 30 * HOUR],
  ['2026-10-25T00:10:00Z', 'killed', 2 * HOUR],
  ['2026-11-01T05:40:00Z', 'killed', 0],
  ['2026-12-31T20:00:00Z', 'stopped', 1 * HOUR],
];

describe(`a fleet of tasks over ${long ? 'a year' : 'four months'}`, function () {
  this.timeout(180_000);
  let world: World;
  let started = 0;

  before(async () => {
    world = await World.open(YEAR.from);
  });
  after(() => world.close());

  /** @param requester whether it searches for fires without a run, which would check every second of the year */
  const start = (requester = false): Promise<SchedulerProcess> => {
    started += 1;
    return world.start(`process ${started}`, { lease, requester });
  };

  /** Starts a process that requests the runs that a dead process left out, and replaces it with one that does not search. */
  const recover = async (): Promise<SchedulerProcess> => {
    const mending = await start(true);
    await world.clock.advance(lease + HOUR / 2);
    expect(mending.failures).to.deep.equal([]);
    await mending.stop();
    return start();
  };

  /** Kills the process when it requests its next run: after the decision of the fire, before the append of the run. */
  const killAtNextRun = (process: SchedulerProcess): Promise<void> =>
    new Promise((killed) => {
      process.store.onAppend = (stream) => {
        if (!stream.startsWith('run-')) return;
        process.kill();
        killed();
      };
    });

  it('has exactly one run for each time of its rules', async () => {
    const fleet = fleetOfAYear();
    expect(fleet.length).to.be.at.least(40);
    for (const { id, fields } of fleet) {
      await world.createTask(id, { misfire_policy: 'all', ...fields });
    }
    let running = await start();
    for (const [at, how, away] of mishaps.filter(([at]) => Date.parse(at) < END)) {
      await world.clock.advanceTo(at);
      if (how === 'stopped') {
        await running.stop();
      } else {
        let dead = false;
        void killAtNextRun(running).then(() => (dead = true));
        // Some task fires every day. If the scheduler has stopped, the test must fail instead of waiting forever.
        const latest = world.clock.now() + 48 * HOUR;
        while (!dead && world.clock.now() < latest) await world.clock.advance(5 * 60_000);
        expect(dead, `a run within two days of ${at}`).to.equal(true);
      }
      await world.clock.advance(away);
      // The next process starts from a view if this one was stopped, and otherwise from the beginning of the log.
      if (how === 'stopped') await world.project([dueProjection]);
      running = how === 'killed' ? await recover() : await start();
    }
    await world.clock.advanceTo(END);
    const outcomes = await outcomesOf(world);
    const faults = fleet.flatMap((task) => faultsOf(task, outcomes.get(task.id)));
    expect(faults).to.deep.equal([]);
    const runs = [...outcomes.values()].reduce((sum, { requested }) => sum + requested.length, 0);
    expect(runs).to.be.greaterThan(long ? 5000 : 1500);
    expect(running.failures).to.deep.equal([]);
  });
});

interface Outcome {
  readonly fired: string[];
  readonly requested: string[];
  readonly others: string[];
}

async function outcomesOf(world: World): Promise<ReadonlyMap<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  const of = (id: string): Outcome => {
    const known = outcomes.get(id) ?? { fired: [], requested: [], others: [] };
    outcomes.set(id, known);
    return known;
  };
  for (const event of await world.events()) {
    if (event.type === 'RunRequested') {
      of(event.data.task_id).requested.push(event.data.scheduled_for ?? event.stream);
    } else if (event.type === 'Fired') {
      of(event.stream.slice('fires-'.length)).fired.push(event.data.nominal);
    } else if (event.stream.startsWith('fires-')) {
      of(event.stream.slice('fires-'.length)).others.push(
        `${event.type} ${JSON.stringify(event.data)}`,
      );
    }
  }
  return outcomes;
}

/** Describes what is wrong with a task's fires; empty if nothing is. */
function faultsOf({ id, expected }: Sailing, outcome: Outcome | undefined): string[] {
  const wanted = expected(END).map(toIso);
  const { fired, requested, others } = outcome ?? { fired: [], requested: [], others: [] };
  const say = (what: string, times: readonly string[]): string[] =>
    times.length === 0 ? [] : [`${id} ${what} ${times.slice(0, 5).join(', ')} (${times.length})`];
  const twice = requested.filter((time, index) => requested.indexOf(time) !== index);
  const has = new Set(requested);
  return [
    ...say(
      'has no run for',
      wanted.filter((time) => !has.has(time)),
    ),
    ...say(
      'has an unexpected run for',
      requested.filter((time) => !wanted.includes(time)),
    ),
    ...say('has two runs for', twice),
    ...say(
      'fired out of order, or at other times than expected:',
      String(fired) === String(wanted) ? [] : fired,
    ),
    ...say('has unexpected events:', others),
  ];
}
