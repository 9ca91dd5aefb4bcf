import { toIso } from '../../domain/clock.ts';
import type { EventStore, StreamAppend } from '../../domain/event-store.ts';
import { catalogue, type DomainEvent } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { nameBasedId, newId, scheduledRunId } from '../../domain/ids.ts';
import { createTaskCommand } from '../../domain/tasks/task-commands.ts';
import { scheduleOf } from '../../domain/tasks/task-schedule.ts';
import { taskDefaults, type TaskDefinition } from '../../domain/tasks/task-definition.ts';
import { inChunks } from '../log.ts';
import { plainTitles, shownTasks, type ShownTask } from './webui-tasks.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const CHUNK = 500;
/** The history is created and written in this many parts of equal length, so that it need not fit into memory. */
const PARTS = 300;
/** Runs of a task that waits for events. */
const EVENT_RUNS = 60;
/** When the service was down, in milliseconds before now. A task that fires every three hours missed one fire then. */
const DOWNTIME = [28 * HOUR, 24.4 * HOUR] as const;

/** The size of a store. */
interface StoreSize {
  /** All tasks, including those with a history. */
  readonly tasks: number;
  /** Approximate. */
  readonly runs: number;
  /** Length of the history. */
  readonly days: number;
  /** The agent that owns the tasks. */
  readonly owner: string;
}

/** The content of a filled store. */
export interface Filled {
  /** Ids by title, of tasks with a history. */
  readonly tasks: ReadonlyMap<string, string>;
  readonly runs: number;
}

/**
 * Fills an empty log with a history of days: tasks with decided fires and ended runs, and plain tasks, due in some hours,
 * with manual runs. No service may be running on it.
 */
export async function fillStore(store: EventStore, size: StoreSize): Promise<Filled> {
  const now = Date.now();
  const began = now - size.days * DAY;
  const history = new History(size.owner, now);
  const tasks = new Map<string, string>();
  const sources: Iterator<number>[] = [];
  let scheduled = 0;
  for (const shown of shownTasks) {
    const { id, definition } = await createTask(store, size.owner, shown, began);
    tasks.set(definition.title, id);
    scheduled += firesOf(definition, began, now);
    sources.push(history.fires(id, definition, shown, began));
  }
  const plain = await createPlainTasks(store, size);
  const manual = plain.length === 0 ? 0 : Math.max(0, size.runs - scheduled);
  sources.push(history.manualRuns(plain, manual, began));
  await history.write(store, sources, began);
  return { tasks, runs: history.runs };
}

/** Approximately how many runs a task's history has. */
function firesOf(definition: TaskDefinition, began: number, now: number): number {
  if (definition.schedule_kind === 'event') return EVENT_RUNS;
  return scheduleIn(definition, began).countBetween(began, now).count;
}

const scheduleIn = (definition: TaskDefinition, began: number) =>
  scheduleOf(definition, toIso(Math.floor(began / 1000) * 1000));

async function createTask(
  store: EventStore,
  owner: string,
  { definition: changes, steps }: Pick<ShownTask, 'definition' | 'steps'>,
  at: number,
): Promise<{ readonly id: string; readonly definition: TaskDefinition }> {
  const title = changes.title ?? '';
  const definition = {
    ...taskDefaults,
    description: title,
    created_by: owner,
    payload: { pipeline: steps },
    ...changes,
  } as TaskDefinition;
  const id = newId(at);
  const context = {
    commandId: newId(at),
    actor: owner,
    source: '127.0.0.1',
    correlationId: newId(at),
    now: at,
  };
  await createTaskCommand({ store, taskId: id, definition, context });
  return { id, definition };
}

/** Daily ones, due in three hours at the earliest. */
async function createPlainTasks(store: EventStore, size: StoreSize): Promise<readonly string[]> {
  const hour = new Date().getUTCHours() + 3;
  const count = Math.max(0, size.tasks - shownTasks.length);
  const created = await inChunks(count, CHUNK, (n) => {
    const definition = {
      title: `${plainTitles[n % plainTitles.length]} ${n}`,
      schedule_kind: 'cron' as const,
      schedule_expr: `${n % 60} ${(hour + (n % 20)) % 24} * * *`,
      tags: [`group-${n % 7}`],
    };
    const steps = [{ id: 'say', uses: 'echo', with: { number: n } }];
    return createTask(store, size.owner, { definition, steps }, Date.now());
  });
  return created.map(({ id }) => id);
}

interface Dated {
  readonly at: number;
  readonly append: StreamAppend;
}

/** Makes events and writes them in the order of time. */
class History {
  runs = 0;
  readonly #owner: string;
  readonly #now: number;
  /** Events that were created but not written yet. */
  readonly #events: Dated[] = [];

  constructor(owner: string, now: number) {
    this.#owner = owner;
    this.#now = now;
  }

  /** Makes every fire of a task's schedule up to now, with its run. Yields the time before each. */
  *fires(id: string, definition: TaskDefinition, shown: ShownTask, began: number) {
    const now = this.#now;
    if (definition.schedule_kind === 'event') {
      for (let n = 0; n < EVENT_RUNS; n += 1) {
        const at = began + ((n + random(n)) / EVENT_RUNS) * (now - began);
        yield at;
        this.#run(id, nameBasedId('shown', id, String(n)), shown, at, 'manual');
      }
      return;
    }
    const schedule = scheduleIn(definition, began);
    const [downFrom, downTo] = DOWNTIME.map((before) => now - before) as [number, number];
    let fire_count = 0;
    let revision = 0;
    const decide = (at: number, event: DomainEvent) => {
      this.#add(`fires-${id}`, revision, at, event);
      revision += 1;
    };
    for (let fire = schedule.next(began); fire !== null && fire.at <= now;) {
      const { at } = fire;
      yield at;
      if (at > downFrom && at < downTo) {
        const { count, last } = schedule.countBetween(at - 1, downTo);
        const to = last ?? at;
        const then = schedule.next(to);
        const next_fire_at = then === null ? null : toIso(then.at);
        const span = { reason: 'missed' as const, from: toIso(at), to: toIso(to), count };
        const data = { ...span, next_fire_at, task_revision: 0, fire_count };
        decide(downTo, { type: 'FiresSkipped', data });
        fire = then;
        continue;
      }
      const then = schedule.next(at);
      fire_count += 1;
      const nominal = toIso(at);
      const run_id = scheduledRunId(id, nominal);
      const next_fire_at = then === null ? null : toIso(then.at);
      const data = { nominal, run_id, next_fire_at, task_revision: 0, fire_count };
      decide(at + 4, { type: 'Fired', data });
      this.#run(id, run_id, shown, at, 'schedule');
      fire = then;
    }
  }

  /** Makes manual runs of one step, spread evenly; most belong to the first tasks. Yields the time before each. */
  *manualRuns(tasks: readonly string[], count: number, began: number) {
    const plain: ShownTask = {
      definition: {},
      steps: [{ id: 'say' }],
      takes: 300,
      fails: [0.05, 'the branch has no data for this day'],
    };
    for (let n = 0; n < count; n += 1) {
      const at = began + ((n + random(n + 0.5)) / count) * (this.#now - began);
      yield at;
      const task = tasks[Math.floor(random(n) ** 3 * tasks.length)] ?? '';
      this.#run(task, nameBasedId('by hand', String(n)), plain, at, 'manual');
    }
  }

  /** Lets the sources make their events and writes them, one part of the history after the other. */
  async write(store: EventStore, sources: readonly Iterator<number>[], began: number) {
    const coming = sources.map((source) => ({ source, next: source.next() }));
    for (let part = 1; part <= PARTS; part += 1) {
      const end = part === PARTS ? Infinity : began + ((this.#now - began) * part) / PARTS;
      for (const each of coming) {
        while (each.next.done !== true && each.next.value < end) each.next = each.source.next();
      }
      this.#events.sort((a, b) => a.at - b.at);
      const later = this.#events.findIndex(({ at }) => at >= end);
      const due = this.#events.splice(0, later === -1 ? this.#events.length : later);
      for (let from = 0; from < due.length; from += CHUNK) {
        await store.appendInOrder(due.slice(from, from + CHUNK).map(({ append }) => append));
      }
    }
  }

  #run(
    task_id: string,
    run: string,
    shown: ShownTask,
    nominal: number,
    trigger: 'schedule' | 'manual',
  ): void {
    const seed = this.runs;
    this.runs += 1;
    const stream = `run-${run}`;
    const takes = shown.takes * (0.6 + random(seed + 0.1) ** 2 * 1.4);
    const started = nominal + 6 + random(seed + 0.2) * 20;
    // No run ends in the future.
    const ended = Math.max(started, Math.min(started + takes, this.#now - 10));
    const [share, error] = shown.fails ?? [0, ''];
    const fails = random(seed + 0.3) < share;
    const twice = !fails && random(seed + 0.4) < (shown.retries ?? 0);
    const scheduled_for = trigger === 'schedule' ? toIso(nominal) : null;
    this.#add(stream, 0, nominal + 5, {
      type: 'RunRequested',
      data: {
        task_id,
        task_revision: 0,
        created_by: this.#owner,
        trigger,
        scheduled_for,
        priority: 5,
        run_at: toIso(nominal),
        event: null,
        retry_of: null,
        prior_steps: [],
        overlap_policy: 'allow',
      },
    });
    const leased_until = toIso(started + 30_000);
    const begin = (attempt: number, at: number, revision: number) =>
      this.#add(stream, revision, at, {
        type: 'RunStarted',
        data: { worker: 'worker-1', attempt, leased_until },
      });
    begin(1, started, 1);
    const middle = started + (ended - started) * 0.4;
    const again = started + (ended - started) * 0.5;
    const second = stepId(shown.steps[1] ?? shown.steps[0]);
    if (twice) {
      this.#add(stream, 2, middle, {
        type: 'RunAttemptFailed',
        data: { attempt: 1, error: 'the other side hung up', step: second, retry_at: toIso(again) },
      });
      begin(2, again, 3);
    }
    const attempt = twice ? 2 : 1;
    const steps = stepsOf(shown, twice ? again : started, ended, fails ? error : null).map(
      (step) => ({ ...step, attempt }),
    );
    const results = steps.map(({ step, result }) => [step, result] as const);
    const output = {
      steps: Object.fromEntries(results) as JsonObject,
      summary: { total_steps: shown.steps.length, executed_steps: steps.length, skipped_steps: 0 },
    };
    const end = { task_id, started_at: toIso(started), attempt, steps, output };
    const failing = { error, step: steps.at(-1)?.step ?? null };
    this.#add(
      stream,
      twice ? 4 : 2,
      ended,
      fails
        ? { type: 'RunFailed', data: { ...end, ...failing } }
        : { type: 'RunSucceeded', data: end },
    );
  }

  #add(stream: string, revision: number, at: number, event: DomainEvent): void {
    const id = nameBasedId('shown', stream, String(revision));
    const metadata = {
      commandId: id,
      $correlationId: id,
      actor: 'service',
      source: 'worker',
      schemaVersion: String(catalogue[event.type].version),
      occurredAt: toIso(at),
    };
    const expected = revision === 0 ? 'none' : revision - 1;
    const append: StreamAppend = { stream, expected, events: [{ ...event, id, metadata }] };
    this.#events.push({ at, append });
  }
}

/** The steps of a run, one after the other; the last one can fail. */
function stepsOf({ steps }: ShownTask, from: number, to: number, error: string | null) {
  const weights: readonly number[] = steps.map(({ uses }) =>
    uses === 'sleep' ? 8 : uses === 'log' ? 0.3 : 1,
  );
  const all = weights.reduce((sum, each) => sum + each, 0);
  const failing = error === null ? -1 : Math.max(0, weights.indexOf(Math.max(...weights)));
  const shown = failing === -1 ? steps : steps.slice(0, failing + 1);
  let at = from;
  return shown.map((step, n) => {
    const started_at = toIso(at);
    at = n === shown.length - 1 ? to : at + ((to - from) * (weights[n] ?? 1)) / all;
    const failed = n === failing;
    return {
      step: stepId(step),
      status: failed ? ('failed' as const) : ('succeeded' as const),
      result: failed ? null : ((step['with'] ?? {}) as JsonObject),
      error: failed ? error : null,
      started_at,
      finished_at: toIso(at),
      log: [],
    };
  });
}

const stepId = (step: JsonObject | undefined): string => {
  const id = step?.['id'];
  return typeof id === 'string' ? id : 'step_0';
};

/** A pseudorandom number from 0 to 1, the same for the same seed. */
function random(seed: number): number {
  const value = Math.sin(seed * 12.9898 + 78.233) * 43_758.5453;
  return value - Math.floor(value);
}
