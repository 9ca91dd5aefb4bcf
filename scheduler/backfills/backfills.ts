import type { Cancel, Clock } from '../../domain/clock.ts';
import type { BackfillOutcome } from '../../domain/backfills/backfill.ts';
import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';
import { idOf } from '../../domain/streams.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import {
  backfillsOf,
  backfillsProjection,
  openBackfills,
} from '../../projections/views/backfills.ts';
import { loadView } from '../../projections/reading/load-view.ts';
import { ReadModelError, type ReadModel } from '../../projections/read-model.ts';
import { BackfillRivals } from './backfill-rivals.ts';
import { BackfillWork } from './backfill-work.ts';
import type { Leadership } from '../processes/leadership.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';

/** Pause before one that waits for what nobody tells of is looked at again. Milliseconds. */
const LOOK_AGAIN = 1000;

/** Most that is waited after a backfill could not be led on; doubled from {@link LOOK_AGAIN}. Milliseconds. */
const MOST_PAUSE = 60_000;

/** Backfills of one task read from the view at a time. */
const PAGE = 200;

/** A backfill that is under way, and who is busy with it here. */
interface Led {
  readonly work: BackfillWork;
  stepping: Promise<void> | null;
  /** Something has happened since the present step began. */
  again: boolean;
  /** What is known of it may be of the past: it is read anew before the next step. */
  stale: boolean;
  failures: number;
  cancelTimer: Cancel;
}

/**
 * Looks after the backfills that are under way: requests runs of each as earlier ones of it end. It knows all of them,
 * from the view and then from the log; the process that leads does the work. Another that believes to lead too loses
 * races for the streams, and no more.
 *
 * While nothing is under way it hears of backfills alone; else also of the ends of runs and of what people do to tasks.
 */
export class Backfills {
  private readonly options: ConstructorParameters<typeof Backfills>[0];
  private readonly led = new Map<string, Led>();
  /** Runs of what is led here: of which backfill, and of which nominal time. */
  private readonly tracked = new Map<string, { readonly led: Led; readonly nominal: string }>();
  /** Of each task the backfills that were heard of here; those before are in the view. */
  private readonly heard = new Map<string, Set<string>>();
  private listening = new AbortController();
  private running = false;

  constructor(options: {
    readonly store: EventStore;
    readonly readModel: ReadModel;
    readonly clock: Clock;
    readonly leadership: Leadership;
    readonly telemetry: Telemetry;
    readonly tasks: PinnedTasks;
    /** Of this process, in the metadata. */
    readonly name: string;
  }) {
    this.options = options;
  }

  /** How many are under way, as far as is known here. */
  get size(): number {
    return this.led.size;
  }

  /** Follows the log until the signal is aborted. @param started called once all that is under way is known */
  async follow(signal: AbortSignal, started: () => void = () => {}): Promise<void> {
    const { store, readModel, leadership } = this.options;
    this.running = true;
    const onLeading = (): void => {
      // Who did not lead did not hear of what happened to the runs.
      for (const led of this.led.values()) led.stale = true;
      this.listening.abort();
    };
    leadership.onChange(onLeading);
    try {
      const after = await loadView(
        { store, readModel },
        backfillsProjection,
        openBackfills,
        (document) => this.open(document.id, document.task_id),
      );
      await this.listen(after, signal, started);
    } finally {
      this.running = false;
      leadership.offChange(onLeading);
      await this.settle();
    }
  }

  private async listen(after: Position, signal: AbortSignal, started: () => void): Promise<void> {
    const { store } = this.options;
    for (let position = after; !signal.aborted;) {
      const listening = (this.listening = new AbortController());
      const { active } = this;
      const prefixes = active ? ['backfill-', 'run-', 'task-'] : ['backfill-'];
      // From here on it hears of all that concerns what is under way.
      for (const led of this.led.values()) this.poke(led);
      const until = AbortSignal.any([signal, listening.signal]);
      for await (const message of store.subscribe({ after: position, prefixes, signal: until })) {
        if (message.kind === 'caught-up') {
          position = message.position;
          started();
        } else {
          for (const event of message.events) this.take(event);
          position = message.events.at(-1)?.position ?? position;
        }
        if (this.active !== active) break;
      }
      // It never ends by itself: what is not an end that was asked for is one.
      if (!signal.aborted && this.active === active && !listening.signal.aborted) {
        throw new Error('the log could not be followed any further');
      }
    }
  }

  private get active(): boolean {
    return this.options.leadership.leads && this.led.size > 0;
  }

  private async settle(): Promise<void> {
    await Promise.all(Array.from(this.led.values(), async ({ stepping }) => stepping));
    for (const { cancelTimer } of this.led.values()) cancelTimer();
    this.led.clear();
    this.tracked.clear();
  }

  private open(id: string, taskId: string): void {
    if (this.led.has(id)) return;
    const { store, tasks, clock, name, telemetry } = this.options;
    const track = (runId: string, nominal: string): void => {
      this.tracked.set(runId, { led, nominal });
    };
    const rivals = new BackfillRivals(store, id, () => this.backfillsOf(taskId));
    const isTraced = telemetry.traces !== undefined;
    const means = { store, tasks, clock, name, track, rivals, isTraced };
    const work = new BackfillWork({ id, taskId, ...means });
    const idle = { stepping: null, again: false, stale: false, failures: 0 };
    const led: Led = { work, ...idle, cancelTimer: () => {} };
    this.led.set(id, led);
    this.poke(led);
  }

  private hear(id: string, taskId: string): void {
    const heard = this.heard.get(taskId) ?? new Set<string>();
    this.heard.set(taskId, heard.add(id));
    this.open(id, taskId);
  }

  /**
   * All backfills of a task that stand in the log before one that is known here. The view has all up to where it was
   * read at first, and each that it knows a later one of; the others were heard of.
   */
  private async backfillsOf(taskId: string): Promise<ReadonlySet<string>> {
    const { readModel } = this.options;
    const heard = this.heard.get(taskId) ?? new Set<string>();
    const all = new Set(heard);
    const query = { ...backfillsOf(taskId), limit: PAGE };
    try {
      let page = await readModel.find(backfillsProjection, query);
      for (;;) {
        // What the view knows need not be remembered.
        for (const { key } of page) {
          all.add(key);
          heard.delete(key);
        }
        const last = page.at(-1);
        if (last === undefined || page.length < PAGE) break;
        const after = { values: [last.document.created_at], key: last.key };
        page = await readModel.find(backfillsProjection, { ...query, after });
      }
    } catch (error) {
      // Without a view all were heard of, from the log's beginning on.
      if (!(error instanceof ReadModelError && error.code === 'NO_VIEW')) throw error;
    }
    if (heard.size === 0) this.heard.delete(taskId);
    return all;
  }

  private take(event: RecordedEvent): void {
    const id = idOf(event.stream);
    if (event.stream.startsWith('backfill-')) {
      if (event.type === 'BackfillRequested') this.hear(id, event.data.task_id);
      const led = this.led.get(id);
      if (led === undefined) return;
      led.work.noteRevision(event.revision);
      if (event.type === 'BackfillCanceled') this.poke(led);
      if (event.type === 'BackfillCompleted') this.drop(led);
      else this.pokeOthers(led);
    } else if (event.stream.startsWith('task-')) {
      for (const led of this.led.values()) if (led.work.taskId === id) this.poke(led);
    } else {
      const outcome = ends.get(event.type);
      const tracked = outcome === undefined ? undefined : this.tracked.get(id);
      if (outcome === undefined || tracked === undefined) return;
      this.tracked.delete(id);
      tracked.led.work.noteEnd(tracked.nominal, outcome);
      this.poke(tracked.led);
    }
  }

  private drop(led: Led): void {
    led.cancelTimer();
    this.led.delete(led.work.id);
    for (const [run, tracked] of this.tracked) if (tracked.led === led) this.tracked.delete(run);
    this.pokeOthers(led);
    if (!this.active) this.listening.abort();
  }

  /** Others of the task may have waited for what this one has decided. */
  private pokeOthers(led: Led): void {
    for (const other of this.led.values()) {
      if (other !== led && other.work.taskId === led.work.taskId) this.poke(other);
    }
  }

  /** Leads one on, unless somebody is at it, who then goes on. */
  private poke(led: Led): void {
    if (!this.running || !this.options.leadership.leads) return;
    led.again = true;
    if (led.stepping !== null) return;
    led.cancelTimer();
    led.stepping = this.lead(led).finally(() => {
      led.stepping = null;
      // In the moment between its last look and now.
      if (led.again && this.led.get(led.work.id) === led) this.poke(led);
    });
  }

  /** Never rejects: what fails is tried again after a pause. */
  private async lead(led: Led): Promise<void> {
    const { telemetry, leadership } = this.options;
    const { work } = led;
    try {
      while (led.again && this.running && leadership.leads) {
        led.again = false;
        if (led.stale) work.forget();
        led.stale = false;
        const stepped = await work.step();
        led.failures = 0;
        if (stepped === 'moved') led.again = true;
        if (stepped === 'done') return this.drop(led);
        if (stepped === 'look-again') this.later(led, LOOK_AGAIN);
      }
    } catch (error) {
      led.stale = true;
      led.again = false;
      const pause = Math.min(LOOK_AGAIN * 2 ** led.failures, MOST_PAUSE);
      led.failures += 1;
      const fields = { backfill: work.id, task: work.taskId, error };
      telemetry.log.warn('a backfill could not be led on; trying again', fields);
      this.later(led, pause);
    }
  }

  private later(led: Led, pause: number): void {
    const { clock } = this.options;
    led.cancelTimer();
    led.cancelTimer = clock.after(pause, () => this.poke(led));
  }
}

/** Events that end a run, and what they count as. */
const ends: ReadonlyMap<string, BackfillOutcome> = new Map([
  ['RunSucceeded', 'succeeded'],
  ['RunFailed', 'failed'],
  ['RunCanceled', 'canceled'],
  ['RunSkipped', 'skipped'],
  ['Abandoned', 'canceled'],
] as const);
