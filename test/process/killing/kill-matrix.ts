import { expect } from 'chai';
import { decidedUpTo } from '../../support/expected-fires.ts';
import { randomBy } from '../../support/random.ts';
import { eventually } from '../../support/signals.ts';
import { Cluster } from '../cluster.ts';
import { CommandLoad } from './command-load.ts';
import { damagedFiles } from '../faults/damaged-files.ts';
import { faultsOfResponses } from '../http-checks.ts';
import { createTasks, plannedTasks, type CreatedTask } from './kill-tasks.ts';
import { Ledger } from '../ledger.ts';
import {
  faultsOfCauses,
  faultsOfCommands,
  faultsOfSchedules,
  faultsOfRuns,
  faultsOfSteps,
  faultsOfStreams,
  faultsOfTriggers,
} from '../log-checks.ts';
import { faultsOfSharing } from '../sharing-checks.ts';
import { StepServer } from '../step-server.ts';
import { faultsOfViews } from '../view-checks.ts';
import { longVersions } from '../../support/left-out.ts';

/** `SVC_TEST_LONG=1`: the whole matrix, not just the part in every test run. */
export const long = longVersions();
export const kills = long ? 100 : 6;

/** The longest life of a process between two kills, in milliseconds. */
const MAX_LIFE_MS = 2000;
/** The longest of the waits after the last restart, in milliseconds. */
const SETTLE_LIMIT = 120_000;
/** The pause between two reads of the whole log, which slow the processes down. Milliseconds. */
const LOG_LOOK_PAUSE = 500;

/** The seed of this run: `SVC_TEST_SEED`, or a random one. */
export function seedOfRun(): number {
  const given = process.env['SVC_TEST_SEED'];
  return given === undefined ? Date.now() % 1_000_000 : Number(given);
}

/**
 * Kills processes of a cluster repeatedly while tasks fire each second, events arrive and runs are
 * requested. Then lets it settle, and checks that nothing was lost, duplicated, or shown
 * incorrectly.
 */
export async function killMatrix(
  roles: readonly string[],
  dataDirectory: string,
  seed: number,
): Promise<void> {
  const random = randomBy(seed);
  const steps = await StepServer.start();
  const cluster = new Cluster(roles, { SVC_DATA_DIR: dataDirectory, SVC_LOG_LEVEL: 'info' });
  try {
    await cluster.start();
    const tasks = await createTasks(cluster, plannedTasks(steps.url));
    const byHand = tasks.find(({ name }) => name === 'by hand')?.id ?? '';
    const load = new CommandLoad(cluster, byHand, random);
    load.start();
    await killAgainAndAgain(cluster, random);
    await load.stop();
    const ledger = await settled(cluster, dataDirectory, tasks);
    const client = cluster.client();
    const answers = await faultsOfResponses(client, ledger, tasks);
    const exitCodes = await cluster.terminate();
    const last = Ledger.read(dataDirectory);
    const faults = [
      ...load.faults,
      ...answers,
      ...exitCodes.filter((code) => code !== 0).map((code) => `a process ended with ${code}`),
      ...faultsOfStreams(last),
      ...faultsOfSchedules(last, tasks),
      ...faultsOfCauses(last),
      ...faultsOfTriggers(last, tasks),
      ...faultsOfRuns(last, tasks),
      ...faultsOfSharing(last, tasks),
      ...faultsOfSteps(last, steps.counts),
      ...faultsOfCommands(last, load.sent),
      ...(await faultsOfViews(dataDirectory)),
      ...damagedFiles(dataDirectory),
    ];
    if (faults.length > 0) {
      throw new Error(`${faults.length} faults, of which:\n${faults.slice(0, 30).join('\n')}`);
    }
    expectMuchWasDone(last, load);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`seed ${seed}: ${message}`, { cause: error });
  } finally {
    await steps.close();
  }
}

async function killAgainAndAgain(cluster: Cluster, random: () => number): Promise<void> {
  for (let kill = 0; kill < kills; kill += 1) {
    await pause(random() * MAX_LIFE_MS);
    const victims = chosen(cluster.size, random);
    await cluster.kill(victims);
    // Some are killed again during their start.
    if (random() < 0.3) {
      cluster.begin(victims);
      await pause(random() * 800);
      await cluster.kill(victims);
    }
    await cluster.restart(victims);
    const client = cluster.client();
    // The first token, signed before all kills, is still valid; so are the credentials.
    expect((await client.get('/tasks?limit=1')).status, 'with the first token').to.equal(200);
    const { status } = await client.post('/agents/auth/token', cluster.credentials);
    expect(status, 'with the first credentials').to.equal(200);
  }
}

/** Usually one process, or several if there are many. */
function chosen(size: number, random: () => number): number[] {
  const all = Array.from({ length: size }, (_, index) => index);
  const count = random() < 0.7 ? 1 : 1 + Math.floor(random() * size);
  return all
    .map((index) => ({ index, order: random() }))
    .sort((a, b) => a.order - b.order)
    .slice(0, count)
    .map(({ index }) => index);
}

/**
 * Waits until each task has fired again, pauses all, and waits until no work is left. Returns the
 * log.
 */
export async function settled(
  cluster: Cluster,
  dataDirectory: string,
  tasks: readonly CreatedTask[],
): Promise<Ledger> {
  const now = Date.now();
  const limit = { limitMs: SETTLE_LIMIT, everyMs: LOG_LOOK_PAUSE };
  const firing = tasks.filter(({ seconds }) => seconds !== undefined);
  await eventually(
    () => {
      const ledger = Ledger.read(dataDirectory);
      for (const { id, name } of firing) {
        if ((decidedUpTo(ledger.fires(id)) ?? 0) < now) throw new Error(`${name} does not fire`);
      }
    },
    { ...limit, what: 'every task to fire again after the last restart' },
  );
  for (const { id, name } of firing) {
    const { status, text } = await cluster.client().post(`/tasks/${id}/pause`);
    expect(status, `${name} is paused: ${text}`).to.equal(200);
  }
  await eventually(
    () => {
      const left = leftToDo(Ledger.read(dataDirectory));
      if (left !== undefined) throw new Error(left);
    },
    { ...limit, what: 'all started work to end' },
  );
  const ledger = Ledger.read(dataDirectory);
  await eventually(
    async () => {
      const { status, text } = await cluster.client().get(`/runs?limit=1&after=${ledger.head}`);
      if (status !== 200) throw new Error(text);
    },
    { ...limit, what: 'the views to catch up with the log' },
  );
  return ledger;
}

/** The work that a log still has to do; undefined if none. */
function leftToDo(ledger: Ledger): string | undefined {
  const unfinished = ledger.runs().find(({ end }) => end === undefined);
  if (unfinished !== undefined)
    return `run ${unfinished.id} is unfinished: ${JSON.stringify(unfinished.events.at(-1))}`;
  const once = ledger
    .all('TaskCreated')
    .filter(({ data }) => data.definition.schedule_kind === 'once')
    .find(({ stream }) => ledger.fires(stream.slice('task-'.length)).length === 0);
  if (once !== undefined) return `${once.data.definition.title} has not run`;
  return faultsOfCauses(ledger)[0];
}

/** A test in which nothing happened proves nothing. */
function expectMuchWasDone(ledger: Ledger, load: CommandLoad): void {
  const count = (type: Parameters<Ledger['all']>[0]): number => ledger.all(type).length;
  expect(count('Fired'), 'fires').to.be.greaterThan(kills * 5);
  expect(count('RunSucceeded'), 'ended runs').to.be.greaterThan(kills * 5);
  // With few kills, each may have hit an idle process.
  if (long) {
    expect(count('FiresSkipped'), 'fires that were missed').to.be.greaterThan(0);
    expect(count('RunInterrupted'), 'runs that were taken over').to.be.greaterThan(0);
  }
  // Each sharing task has used its shared resource.
  const ends = ledger.runs().map(({ end }) => end);
  const skipped = (reason: string): number =>
    ends.filter((end) => end?.type === 'RunSkipped' && end.data.reason === reason).length;
  expect(skipped('duplicate'), 'duplicates').to.be.greaterThan(0);
  if (long) {
    expect(skipped('overlap'), 'runs that were skipped because of an overlap').to.be.greaterThan(0);
    expect(count('RunCancelRequested'), 'runs that were canceled').to.be.greaterThan(0);
  }
  const acknowledged = load.sent.filter(({ id }) => id !== null).length;
  expect(acknowledged, 'acknowledged commands').to.be.greaterThan(kills * 3);
}

/** The kills come at random intervals. No assertion depends on these pauses. */
const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));
