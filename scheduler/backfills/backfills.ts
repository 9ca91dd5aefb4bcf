import type { Cancel } from '../../domain/clock.ts';
import type { BackfillOutcome } from '../../domain/backfills/backfill.ts';
import type { Position, RecordedEvent } from '../../domain/event-store.ts';
import { idOf } from '../../domain/streams.ts';
import {
  backfillsOf,
  backfillsProjection,
  openBackfills,
} from '../../projections/views/backfills.ts';
import { loadView } from '../../projections/reading/load-view.ts';
import { ReadModelError } from '../../projections/read-model.ts';
import { EarlierBackfills } from './earlier-backfills.ts';
import { BackfillRunner } from './backfill-runner.ts';
import type { ProcessParts } from '../process-parts.ts';

/** The message that reports a failure. */
const FAILURE = 'a backfill could not continue; retrying';

/** The pause before a step is repeated that waits without an event. It doubles after failures. Milliseconds. */
const POLL_INTERVAL = 1000;
const MAX_PAUSE = 60_000;

const PAGE_SIZE = 200;

interface OpenBackfill {
  readonly runner: BackfillRunner;
  running: Promise<void> | null;
  /** Something has happened since the present step began. */
  again: boolean;
  /** The runner's state may be out of date, so it is read again before the next step. */
  stale: boolean;
  failures: number;
  cancelTimer: Cancel;
}

/**
 * Executes the open backfills: requests runs of each as earlier ones end. Every process knows all open backfills, from
 * the view and the log; the leader does the work. A second process that wrongly believes that it is the leader only
 * loses races.
 *
 * While no backfill is open, it follows only backfills; otherwise, it also follows tasks and the ends of runs.
 */
export class Backfills {
  readonly #options: Omit<ProcessParts, 'coordination'>;
  readonly #open = new Map<string, OpenBackfill>();
  /** The open backfill and the nominal time of each of its runs. */
  readonly #runs = new Map<string, { readonly backfill: OpenBackfill; readonly nominal: string }>();
  /** Backfills by task that this process has seen in the log; the view has the earlier ones. */
  readonly #seen = new Map<string, Set<string>>();
  #listening = new AbortController();
  #isRunning = false;

  constructor(options: Omit<ProcessParts, 'coordination'>) {
    this.#options = options;
  }

  /** Number of open backfills, as far as is known here. */
  get size(): number {
    return this.#open.size;
  }

  /** Follows the log until the signal is aborted. @param started called once all open backfills are known */
  async follow(signal: AbortSignal, started: () => void = () => {}): Promise<void> {
    const { store, readModel, leadership } = this.#options;
    this.#isRunning = true;
    const onLeadershipChange = (): void => {
      // A process that was not the leader did not follow the runs.
      for (const backfill of this.#open.values()) backfill.stale = true;
      this.#listening.abort();
    };
    leadership.onChange(onLeadershipChange);
    try {
      const after = await loadView(
        { store, readModel },
        backfillsProjection,
        openBackfills,
        (document) => this.#add(document.id, document.task_id),
      );
      await this.#listen(after, signal, started);
    } finally {
      this.#isRunning = false;
      leadership.offChange(onLeadershipChange);
      await this.#settle();
    }
  }

  async #listen(after: Position, signal: AbortSignal, started: () => void): Promise<void> {
    for (let position = after; !signal.aborted;) {
      const listening = (this.#listening = new AbortController());
      const isActive = this.#isActive;
      const prefixes = isActive ? ['backfill-', 'run-', 'task-'] : ['backfill-'];
      // From here on, all events of open backfills are received.
      for (const backfill of this.#open.values()) this.#wake(backfill);
      const from = {
        after: position,
        prefixes,
        signal: AbortSignal.any([signal, listening.signal]),
      };
      for await (const message of this.#options.store.subscribe(from)) {
        if (message.kind === 'caught-up') {
          position = message.position;
          started();
        } else {
          for (const event of message.events) this.#take(event);
          position = message.events.at(-1)?.position ?? position;
        }
        if (this.#isActive !== isActive) break;
      }
      // A subscription does not end by itself.
      if (!signal.aborted && this.#isActive === isActive && !listening.signal.aborted) {
        throw new Error('the subscription to the event log has ended');
      }
    }
  }

  get #isActive(): boolean {
    return this.#options.leadership.leads && this.#open.size > 0;
  }

  async #settle(): Promise<void> {
    await Promise.all(Array.from(this.#open.values(), async ({ running }) => running));
    for (const { cancelTimer } of this.#open.values()) cancelTimer();
    this.#open.clear();
    this.#runs.clear();
  }

  #add(id: string, taskId: string): void {
    if (this.#open.has(id)) return;
    const { store, tasks, clock, name, telemetry } = this.#options;
    const runner = new BackfillRunner({
      id,
      taskId,
      store,
      tasks,
      clock,
      name,
      track: (runId, nominal) => void this.#runs.set(runId, { backfill, nominal }),
      earlier: new EarlierBackfills(store, id, () => this.#backfillsOf(taskId)),
      isTraced: telemetry.traces !== undefined,
    });
    const state = { running: null, again: false, stale: false, failures: 0 };
    const backfill: OpenBackfill = { runner, ...state, cancelTimer: () => {} };
    this.#open.set(id, backfill);
    this.#wake(backfill);
  }

  /**
   * All backfills of a task before a known one: those in the view, and those that this process has seen. The view is
   * complete up to the position at which it was first read, and before each backfill that it contains.
   */
  async #backfillsOf(taskId: string): Promise<ReadonlySet<string>> {
    const { readModel } = this.#options;
    const seen = this.#seen.get(taskId) ?? new Set<string>();
    const all = new Set(seen);
    const query = { ...backfillsOf(taskId), limit: PAGE_SIZE };
    try {
      let page = await readModel.find(backfillsProjection, query);
      for (;;) {
        // Backfills in the view need not be remembered.
        for (const { key } of page) {
          all.add(key);
          seen.delete(key);
        }
        const last = page.at(-1);
        if (last === undefined || page.length < PAGE_SIZE) break;
        const after = { values: [last.document.created_at], key: last.key };
        page = await readModel.find(backfillsProjection, { ...query, after });
      }
    } catch (error) {
      // Without a view, the log was followed from its beginning.
      if (!(error instanceof ReadModelError && error.code === 'NO_VIEW')) throw error;
    }
    if (seen.size === 0) this.#seen.delete(taskId);
    return all;
  }

  #take(event: RecordedEvent): void {
    const id = idOf(event.stream);
    if (event.stream.startsWith('backfill-')) {
      if (event.type === 'BackfillRequested') {
        const { task_id } = event.data;
        this.#seen.set(task_id, (this.#seen.get(task_id) ?? new Set<string>()).add(id));
        this.#add(id, task_id);
      }
      const backfill = this.#open.get(id);
      if (backfill === undefined) return;
      backfill.runner.noteRevision(event.revision);
      if (event.type === 'BackfillCanceled') this.#wake(backfill);
      if (event.type === 'BackfillCompleted') this.#drop(backfill);
      else this.#wakeOthers(backfill);
    } else if (event.stream.startsWith('task-')) {
      for (const backfill of this.#open.values()) {
        if (backfill.runner.taskId === id) this.#wake(backfill);
      }
    } else {
      const outcome = outcomes.get(event.type);
      const run = outcome === undefined ? undefined : this.#runs.get(id);
      if (outcome === undefined || run === undefined) return;
      this.#runs.delete(id);
      run.backfill.runner.noteEnd(run.nominal, outcome);
      this.#wake(run.backfill);
    }
  }

  #drop(backfill: OpenBackfill): void {
    backfill.cancelTimer();
    this.#open.delete(backfill.runner.id);
    for (const [id, run] of this.#runs) if (run.backfill === backfill) this.#runs.delete(id);
    this.#wakeOthers(backfill);
    if (!this.#isActive) this.#listening.abort();
  }

  /** Other backfills of the task may have waited for this one's decision. */
  #wakeOthers(backfill: OpenBackfill): void {
    for (const other of this.#open.values()) {
      if (other !== backfill && other.runner.taskId === backfill.runner.taskId) this.#wake(other);
    }
  }

  /** Continues a backfill. If the backfill is already running, it takes another step afterwards. */
  #wake(backfill: OpenBackfill): void {
    if (!this.#isRunning || !this.#options.leadership.leads) return;
    backfill.again = true;
    if (backfill.running !== null) return;
    backfill.cancelTimer();
    backfill.running = this.#advance(backfill).finally(() => {
      backfill.running = null;
      // The backfill was woken between its last step and now.
      if (backfill.again && this.#open.get(backfill.runner.id) === backfill) this.#wake(backfill);
    });
  }

  /** Never rejects: after a failure it tries again, after a pause. */
  async #advance(backfill: OpenBackfill): Promise<void> {
    const { telemetry, leadership } = this.#options;
    const { runner } = backfill;
    try {
      while (backfill.again && this.#isRunning && leadership.leads) {
        backfill.again = false;
        if (backfill.stale) runner.forget();
        backfill.stale = false;
        const result = await runner.step();
        telemetry.failures.worked(FAILURE);
        backfill.failures = 0;
        if (result === 'advanced') backfill.again = true;
        if (result === 'done') return this.#drop(backfill);
        if (result === 'poll') this.#wakeLater(backfill, POLL_INTERVAL);
      }
    } catch (error) {
      backfill.stale = true;
      backfill.again = false;
      const pause = Math.min(POLL_INTERVAL * 2 ** backfill.failures, MAX_PAUSE);
      backfill.failures += 1;
      const fields = { backfill: runner.id, task: runner.taskId };
      telemetry.failures.failed(FAILURE, error, fields);
      this.#wakeLater(backfill, pause);
    }
  }

  #wakeLater(backfill: OpenBackfill, pause: number): void {
    backfill.cancelTimer();
    backfill.cancelTimer = this.#options.clock.after(pause, () => this.#wake(backfill));
  }
}

const outcomes: ReadonlyMap<string, BackfillOutcome> = new Map([
  ['RunSucceeded', 'succeeded'],
  ['RunFailed', 'failed'],
  ['RunCanceled', 'canceled'],
  ['RunSkipped', 'skipped'],
  ['Abandoned', 'canceled'],
] as const);
