import { toIso, type Clock, type Instant } from '../../domain/clock.ts';
import {
  BACKFILL_PRIORITY,
  advanceBackfill,
  backfillFold,
  cancelBackfill,
  concurrencyOf,
  isOpen,
  nominalTimes,
  type BackfillOutcome,
  type BackfillState,
  type BackfillStep,
  type KnownBackfill,
} from '../../domain/backfills/backfill.ts';
import { haveRuns } from '../../domain/backfills/backfill-commands.ts';
import { Refusal } from '../../domain/errors.ts';
import { isConflict, type EventStore } from '../../domain/event-store.ts';
import type { BackfillEvent, DataOf } from '../../domain/events/catalogue.ts';
import { load, toNewEvents, type CommandContext, type Loaded } from '../../domain/handle.ts';
import { backfillRunId, nameBasedId, newId } from '../../domain/ids.ts';
import { hasEnded, runFold, type RunState } from '../../domain/runs/run.ts';
import { placesOfTask, requestRun } from '../../domain/runs/run-request.ts';
import type { Schedule } from '../../domain/schedule/schedule.ts';
import { streams } from '../../domain/streams.ts';
import { undecidedFrom, scheduleOf, cancelRunCommand } from '../../domain/tasks/task-commands.ts';
import { requireTask, taskFold, type LiveTask } from '../../domain/tasks/task.ts';
import type { BackfillRivals } from './backfill-rivals.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import { requestCommandId } from '../fires/requests-of-runs.ts';
import { firstTraceparent } from '../tracing.ts';

/** Most nominal times that one step looks at. */
const MOST_LOOKED_AT = 256;

/** Decisions of the task's own schedule that are looked through for a fire whose run is about to be requested. */
const LATEST_FIRES = 100;

/** What a step came to. */
export type Stepped =
  /** Something was written: there may be more to do at once. */
  | 'moved'
  /** Nothing to do until a run ends, or somebody does something to the backfill or its task. */
  | 'waiting'
  /** It waits for something that nobody tells of here: look again soon. */
  | 'look-again'
  /** Nothing is left to do. */
  | 'done';

/** What was picked to be decided next, and whether to look again soon where that was nothing. */
type Picked = Omit<BackfillStep, 'ended'> & { readonly lookAgain: boolean };

/**
 * One backfill, led on step by step. Each step decides by an append to `backfill-<id>`, expecting the revision that was
 * read; the runs are requested behind it. Where this process may die, and what is left then:
 * - before `BackfillAdvanced`: nothing; whoever goes on decides anew;
 * - between it and the runs' requests: nominal times that stand in `unfinished` without a run. Whoever goes on requests
 *   the same runs, whose first event expects an empty stream;
 * - after a run's end, before that is written down: whoever goes on reads the run's own stream;
 * - after `BackfillCanceled`, before its runs are told: whoever goes on tells them. What was never requested is closed
 *   by `Abandoned`, so that nobody who still believes in it can request it.
 */
export class BackfillWork {
  readonly id: string;
  readonly taskId: string;
  private readonly store: EventStore;
  private readonly tasks: PinnedTasks;
  private readonly clock: Clock;
  private readonly name: string;
  private readonly track: (runId: string, nominal: string) => void;
  private readonly rivals: BackfillRivals;
  private readonly isTraced: boolean;
  /** Of the command that asked for it; undefined before it is known, and where there is none. */
  private traceparent: string | undefined;
  private loaded: Loaded<BackfillState> | null = null;
  private schedule: Schedule | null = null;
  /** Nominal times whose runs were seen to be as the state of the backfill wants them. */
  private confirmed = new Set<string>();
  private told = new Set<string>();
  private readonly ended = new Map<string, BackfillOutcome>();
  /** What the schedule fired last, as of when it was read. */
  private fired: { readonly revision: number; readonly nominals: ReadonlySet<string> } | null =
    null;
  /** Its runs, as far as they were looked at here. */
  private readonly own = new Set<string>();

  constructor(options: {
    readonly id: string;
    readonly taskId: string;
    readonly store: EventStore;
    readonly tasks: PinnedTasks;
    readonly clock: Clock;
    /** Of this process, in the metadata. */
    readonly name: string;
    /** Called before a run is looked at: from then on its end must be told by {@link noteEnd}. */
    readonly track: (runId: string, nominal: string) => void;
    /** The backfills before it. */
    readonly rivals: BackfillRivals;
    /** Its events are to tell which trace they come from. */
    readonly isTraced: boolean;
  }) {
    this.id = options.id;
    this.taskId = options.taskId;
    this.store = options.store;
    this.tasks = options.tasks;
    this.clock = options.clock;
    this.name = options.name;
    this.track = options.track;
    this.rivals = options.rivals;
    this.isTraced = options.isTraced;
  }

  /** What is known here may not be so any more: the next step reads it anew. */
  forget(): void {
    this.loaded = null;
    this.confirmed.clear();
    this.told.clear();
    this.ended.clear();
    this.fired = null;
  }

  /** The run of a nominal time has ended. */
  noteEnd(nominal: string, outcome: BackfillOutcome): void {
    this.ended.set(nominal, outcome);
  }

  /** Somebody has appended to the stream. */
  noteRevision(revision: number): void {
    if (this.loaded !== null && Number(this.loaded.revision) < revision) this.loaded = null;
  }

  /**
   * Does what can be done now, up to the next append.
   * @throws EventStoreError all that the log throws; a repetition goes on where this stopped
   */
  async step(): Promise<Stepped> {
    const loaded = (this.loaded ??= await load(
      this.store,
      streams.backfill(this.id),
      backfillFold,
    ));
    const { state: known } = loaded;
    if (!isOpen(known)) return 'done';
    if (this.isTraced) {
      this.traceparent ??= await firstTraceparent(this.store, streams.backfill(this.id));
    }
    // From the log: an event of the task that led here may not have come to those who follow it.
    const task = requireTask((await load(this.store, streams.task(this.taskId), taskFold)).state);
    if (known.state === 'running' && task.status === 'canceled') {
      return this.append(loaded, cancelBackfill(known, 'task_canceled'));
    }
    await this.confirm(known);
    const picked =
      known.state === 'running' ? await this.pick(known, task) : nothing(known.progress.up_to);
    const events = advanceBackfill(known, { ...picked, ended: new Map(this.ended) });
    if (events.length === 0) return picked.lookAgain ? 'look-again' : 'waiting';
    return this.append(loaded, events);
  }

  private async append(
    loaded: Loaded<BackfillState>,
    events: readonly BackfillEvent[],
  ): Promise<Stepped> {
    const stream = streams.backfill(this.id);
    const appended = toNewEvents(stream, events, this.contextOf(newId(this.clock.now())));
    let result;
    try {
      result = await this.store.append(stream, appended, loaded.revision);
    } catch (error) {
      // Whatever was thrown: what the log says counts.
      this.loaded = null;
      if (isConflict(error)) return 'moved';
      throw error;
    }
    const { revision, position } = result;
    let { state } = loaded;
    for (const event of appended) {
      const place = { revision, metadata: event.metadata };
      state = backfillFold.evolve(state, event as unknown as BackfillEvent, place);
    }
    this.loaded = { state, revision, position };
    if (state.state !== 'none') this.keepOnly(state.progress.unfinished);
    return isOpen(state) ? 'moved' : 'done';
  }

  private keepOnly(unfinished: readonly string[]): void {
    const going = new Set(unfinished);
    for (const kept of [this.confirmed, this.told, this.ended]) {
      for (const nominal of kept.keys()) if (!going.has(nominal)) kept.delete(nominal);
    }
  }

  /** Each unfinished run is there, or (of a canceled backfill) is told to end. */
  private async confirm(known: KnownBackfill): Promise<void> {
    const seen = known.state === 'running' ? this.confirmed : this.told;
    const unseen = known.progress.unfinished.filter(
      (nominal) => !seen.has(nominal) && !this.ended.has(nominal),
    );
    if (unseen.length === 0) return;
    const pinned = await this.pinned(known);
    const looked = await Promise.allSettled(
      unseen.map(async (nominal) => {
        const runId = backfillRunId(this.taskId, nominal, this.id);
        this.own.add(runId);
        this.track(runId, nominal);
        if (known.state === 'running') await this.request(runId, nominal, pinned);
        else await this.cancel(runId, nominal);
        seen.add(nominal);
      }),
    );
    // Only when all are over: nothing of this step goes on beside the next one.
    for (const each of looked) if (each.status === 'rejected') throw each.reason;
  }

  private pinned({ request }: KnownBackfill): Promise<LiveTask> {
    return this.tasks.at(this.taskId, request.task_revision);
  }

  private async request(runId: string, nominal: string, task: LiveTask): Promise<void> {
    const { created_by, overlap_policy } = task.definition;
    const now = this.clock.now();
    const request: DataOf<'RunRequested'> = {
      task_id: this.taskId,
      task_revision: task.revision,
      created_by,
      trigger: 'backfill',
      scheduled_for: nominal,
      priority: BACKFILL_PRIORITY,
      run_at: toIso(now),
      event: null,
      retry_of: null,
      prior_steps: [],
      overlap_policy,
    };
    // It gives way: it waits for what is under way, and never cancels that, nor is skipped because of it.
    const rules =
      overlap_policy === 'allow'
        ? task.definition
        : { ...task.definition, overlap_policy: 'queue' as const };
    const context = this.contextOf(requestCommandId(runId, request), now);
    const requested = await requestRun(this.store, { runId, request, rules, context });
    if (requested.kind === 'skipped') this.noteEnd(nominal, 'skipped');
    // It may have been requested before, by this process or another, and have ended while nobody here listened for it.
    else await this.look(runId, nominal);
  }

  /** What the run's own stream says of its end. */
  private async look(runId: string, nominal: string): Promise<void> {
    const { state } = await load(this.store, streams.run(runId), runFold);
    if (hasEnded(state)) this.noteEnd(nominal, outcomeOf(state));
  }

  private async cancel(runId: string, nominal: string): Promise<void> {
    const now = this.clock.now();
    const commandId = nameBasedId('backfill cancels', this.id, runId);
    const context = { ...this.contextOf(commandId, now), reason: 'its backfill is canceled' };
    for (;;) {
      try {
        await cancelRunCommand(this.store, runId, context);
        break;
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        // It is over, or was never requested: then nobody shall request it.
        if (error.code !== 'NOT_FOUND' || (await this.close(runId, now))) break;
        await this.look(runId, nominal);
        if (this.ended.has(nominal)) return;
      }
    }
    await this.look(runId, nominal);
  }

  /** Closes a stream to those who would request the run. @returns false when somebody was faster */
  private async close(runId: string, now: Instant): Promise<boolean> {
    const stream = streams.run(runId);
    const data = { reservation: streams.backfill(this.id) };
    const context = this.contextOf(nameBasedId('backfill closes', this.id, runId), now);
    const events = toNewEvents(stream, [{ type: 'Abandoned', data }], context);
    try {
      await this.store.append(stream, events, 'none');
      return true;
    } catch (error) {
      if (isConflict(error)) return false;
      throw error;
    }
  }

  private async pick(known: KnownBackfill, task: LiveTask): Promise<Picked> {
    const { request, progress } = known;
    const upTo = progress.up_to;
    const pinned = await this.pinned(known);
    this.schedule ??= scheduleOf(pinned.definition, pinned.anchor);
    const { schedule } = this;
    const isLast = nominalTimes(schedule, request, upTo, 1).length === 0;
    if (isLast) return { ...nothing(upTo), exhausted: true };
    const { overlap_policy } = pinned.definition;
    const unfinished = progress.unfinished.filter((nominal) => !this.ended.has(nominal));
    const free = concurrencyOf(request, overlap_policy) - unfinished.length;
    // Paused: what is under way goes on when the task does, and nothing is added to it.
    if (free <= 0 || task.status === 'paused') return nothing(upTo);
    if (overlap_policy !== 'allow' && (await this.isTaskBusy(pinned))) {
      return { ...nothing(upTo), lookAgain: true };
    }
    const owed = request.only === 'missing' ? await undecidedFrom(this.store, this.taskId) : null;
    return this.choose(known, schedule, free, owed);
  }

  /**
   * Takes nominal times in order, as many as may be run now.
   * @param owed what the schedule itself is to decide yet, from there on: then it is seen whether it has a run
   */
  private async choose(
    { request, progress }: KnownBackfill,
    schedule: Schedule,
    free: number,
    owed: string | null,
  ): Promise<Picked> {
    if (request.only === 'missing') await this.rivals.look(request);
    const taken: string[] = [];
    let { up_to: upTo } = progress;
    let existing = 0;
    let wanted = free;
    for (let looked = 0; looked < MOST_LOOKED_AT;) {
      const times = nominalTimes(schedule, request, upTo, wanted);
      if (times.length === 0) return { upTo, taken, existing, exhausted: true, lookAgain: false };
      const has = await this.haveRuns(request, times);
      for (const [index, nominal] of times.entries()) {
        const stop = { upTo, taken, existing, exhausted: false };
        const waits = request.only === 'missing' && this.rivals.mayStillRun(nominal);
        if (waits) return { ...stop, lookAgain: true };
        if (!has[index] && taken.length >= free) return { ...stop, lookAgain: false };
        if (owed !== null && nominal >= owed) return { ...stop, lookAgain: true };
        if (has[index]) existing += 1;
        else taken.push(nominal);
        upTo = nominal;
      }
      looked += times.length;
      // Where none is free only those are looked for that have a run, and one that has none ends it.
      wanted = Math.min(2 * times.length, MOST_LOOKED_AT);
      if (taken.length >= free) break;
    }
    return { upTo, taken, existing, exhausted: false, lookAgain: false };
  }

  /** Which of some nominal times are left out; also those whose run is about to be requested by their own fire. */
  private async haveRuns(
    request: DataOf<'BackfillRequested'>,
    times: readonly string[],
  ): Promise<readonly boolean[]> {
    const fired = request.only === 'all' ? undefined : await this.firedLately();
    return haveRuns(this.store, { ...request, earlier: this.rivals.ids }, times, fired);
  }

  /** Nominal times that the schedule fired last, however long ago they are: a fire may be decided late. */
  private async firedLately(): Promise<ReadonlySet<string>> {
    const stream = streams.fires(this.taskId);
    const backwards = { direction: 'backwards' } as const;
    const [last] = await this.store.readStream(stream, { ...backwards, limit: 1 });
    const revision = last?.revision ?? -1;
    if (this.fired?.revision === revision) return this.fired.nominals;
    const decisions = await this.store.readStream(stream, { ...backwards, limit: LATEST_FIRES });
    const nominals = decisions.flatMap((event) =>
      event.type === 'Fired' ? [event.data.nominal] : [],
    );
    this.fired = { revision, nominals: new Set(nominals) };
    return this.fired.nominals;
  }

  /** Whether a run that is not of this backfill holds the task, or waits for it. */
  private async isTaskBusy({ definition }: LiveTask): Promise<boolean> {
    const places = await placesOfTask(this.store, this.taskId, definition.created_by);
    return places.some(({ run_id }) => !this.own.has(run_id));
  }

  private contextOf(commandId: string, now = this.clock.now()): CommandContext {
    const { name: source, id: correlationId, traceparent } = this;
    return { commandId, actor: 'service', source, correlationId, traceparent, now };
  }
}

const nothing = (upTo: string | null): Picked => ({
  upTo,
  taken: [],
  existing: 0,
  exhausted: false,
  lookAgain: false,
});

/** How a run that has ended counts. One that was closed before it was requested counts as canceled. */
function outcomeOf({ state }: RunState): BackfillOutcome {
  return state === 'succeeded' || state === 'failed' || state === 'skipped' ? state : 'canceled';
}
