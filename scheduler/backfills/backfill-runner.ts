import { toIso, type Instant } from '../../domain/clock.ts';
import {
  BACKFILL_PRIORITY,
  advanceBackfill,
  backfillFold,
  cancelBackfill,
  effectiveConcurrency,
  isOpen,
  nominalTimes,
  type BackfillOutcome,
  type BackfillState,
  type BackfillStep,
  type KnownBackfill,
} from '../../domain/backfills/backfill.ts';
import { haveRuns } from '../../domain/backfills/backfill-commands.ts';
import { RefusalError } from '../../domain/errors.ts';
import type { BackfillEvent } from '../../domain/events/catalogue.ts';
import { load, toNewEvents, type CommandContext, type Loaded } from '../../domain/handle.ts';
import { backfillRunId, nameBasedId, newId } from '../../domain/ids.ts';
import { hasEnded, runFold, type RunState } from '../../domain/runs/run.ts';
import { placesOfTask, requestRun, runRequestOf } from '../../domain/runs/run-request.ts';
import type { Schedule } from '../../domain/schedule/schedule.ts';
import { streams } from '../../domain/streams.ts';
import { firstUndecidedFire, cancelRunCommand } from '../../domain/tasks/task-commands.ts';
import { scheduleOf } from '../../domain/tasks/task-schedule.ts';
import { requireTask, taskFold, type LiveTask } from '../../domain/tasks/task.ts';
import { tryAppend } from '../../domain/try-append.ts';
import type { EarlierBackfills } from './earlier-backfills.ts';
import type { ProcessParts } from '../process-parts.ts';
import { requestCommandId } from '../fires/request-append.ts';
import { firstTraceparent } from '../tracing.ts';

const MAX_TIMES_PER_STEP = 256;

/** How many of the schedule's last decisions are read. They include all fires whose runs may still be requested. */
const RECENT_FIRES = 100;

export type StepResult =
  /** An event was written; the next step may follow at once. */
  | 'advanced'
  /** There is nothing to do until a run ends, or the backfill or its task changes. */
  | 'waiting'
  /** It waits for a change that raises no event here. */
  | 'poll'
  | 'done';

/** The nominal times selected by a step, and whether to poll if there are none. */
type Selection = Omit<BackfillStep, 'ended'> & { readonly poll: boolean };

/**
 * Executes one backfill step by step. Each step appends to `backfill-<id>` with the revision expected; then the runs are
 * requested. What a crash leaves:
 * - before `BackfillAdvanced`: nothing; the next process decides again;
 * - before the runs are requested: nominal times in `unfinished` without a run. The next process requests the same runs,
 *   whose first event expects an empty stream;
 * - before a run's end is recorded: the next process reads the run's own stream;
 * - after `BackfillCanceled`, before its runs are canceled: the next process cancels them. A run that was never
 *   requested is closed with `Abandoned`, so that no process can request it any more.
 */
export class BackfillRunner {
  readonly id: string;
  readonly taskId: string;
  readonly #options: ConstructorParameters<typeof BackfillRunner>[0];
  /** The trace context of the command that requested the backfill, if known. */
  #traceparent: string | undefined;
  #loaded: Loaded<BackfillState> | null = null;
  #schedule: Schedule | null = null;
  /** Nominal times whose runs were requested, and those whose runs were canceled. */
  readonly #requested = new Set<string>();
  readonly #canceled = new Set<string>();
  readonly #ended = new Map<string, BackfillOutcome>();
  readonly #ownRuns = new Set<string>();

  constructor(
    options: Pick<ProcessParts, 'store' | 'tasks' | 'clock' | 'name'> & {
      readonly id: string;
      readonly taskId: string;
      /** Called before a run is read. From then on, its end must be passed to {@link noteEnd}. */
      readonly track: (runId: string, nominal: string) => void;
      readonly earlier: EarlierBackfills;
      /** Its events carry a traceparent. */
      readonly isTraced: boolean;
    },
  ) {
    this.#options = options;
    this.id = options.id;
    this.taskId = options.taskId;
  }

  /** Makes the next step read everything again. */
  forget(): void {
    this.#loaded = null;
    for (const known of [this.#requested, this.#canceled, this.#ended]) known.clear();
  }

  /** The run of a nominal time has ended. */
  noteEnd(nominal: string, outcome: BackfillOutcome): void {
    this.#ended.set(nominal, outcome);
  }

  /** The backfill's stream has reached a revision. */
  noteRevision(revision: number): void {
    if (this.#loaded !== null && Number(this.#loaded.revision) < revision) this.#loaded = null;
  }

  /**
   * Does what can be done now, up to the next append.
   * @throws EventStoreError all errors of the log; a repetition continues the work
   */
  async step(): Promise<StepResult> {
    const { store, isTraced } = this.#options;
    const stream = streams.backfill(this.id);
    const loaded = (this.#loaded ??= await load(store, stream, backfillFold));
    const { state: known } = loaded;
    if (!isOpen(known)) return 'done';
    if (isTraced) this.#traceparent ??= await firstTraceparent(store, stream);
    // Read from the log, because live followers may not have received the task's last event.
    const task = requireTask((await load(store, streams.task(this.taskId), taskFold)).state);
    if (known.state === 'running' && task.status === 'canceled') {
      return this.#append(loaded, cancelBackfill(known, 'task_canceled'));
    }
    await this.#updateRuns(known);
    const selection =
      known.state === 'running' ? await this.#select(known, task) : nothing(known.progress.up_to);
    const events = advanceBackfill(known, { ...selection, ended: new Map(this.#ended) });
    if (events.length === 0) return selection.poll ? 'poll' : 'waiting';
    return this.#append(loaded, events);
  }

  async #append(
    loaded: Loaded<BackfillState>,
    events: readonly BackfillEvent[],
  ): Promise<StepResult> {
    const { store, clock } = this.#options;
    const stream = streams.backfill(this.id);
    const appended = toNewEvents(stream, events, this.#contextOf(newId(clock.now())));
    // Read again after a failure.
    this.#loaded = null;
    const result = await tryAppend(store, stream, appended, loaded.revision);
    if (result === null) return 'advanced';
    const { revision, position } = result;
    let { state } = loaded;
    for (const event of appended) {
      const place = { revision, metadata: event.metadata };
      state = backfillFold.evolve(state, event as unknown as BackfillEvent, place);
    }
    this.#loaded = { state, revision, position };
    if (state.state !== 'none') this.#retain(state.progress.unfinished);
    return isOpen(state) ? 'advanced' : 'done';
  }

  #retain(unfinished: readonly string[]): void {
    const retained = new Set(unfinished);
    for (const known of [this.#requested, this.#canceled, this.#ended]) {
      for (const nominal of known.keys()) if (!retained.has(nominal)) known.delete(nominal);
    }
  }

  /** Requests each unfinished run, or cancels it with its backfill. */
  async #updateRuns(known: KnownBackfill): Promise<void> {
    const done = known.state === 'running' ? this.#requested : this.#canceled;
    const pending = known.progress.unfinished.filter(
      (nominal) => !done.has(nominal) && !this.#ended.has(nominal),
    );
    if (pending.length === 0) return;
    const pinned = await this.#pinned(known);
    const results = await Promise.allSettled(
      pending.map(async (nominal) => {
        const runId = backfillRunId(this.taskId, nominal, this.id);
        this.#ownRuns.add(runId);
        this.#options.track(runId, nominal);
        if (known.state === 'running') await this.#request(runId, nominal, pinned, known.request);
        else await this.#cancel(runId, nominal);
        done.add(nominal);
      }),
    );
    // Waits until all are settled, so that no work of this step overlaps with the next step.
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  #pinned({ request }: KnownBackfill): Promise<LiveTask> {
    return this.#options.tasks.at(this.taskId, request.task_revision);
  }

  async #request(
    runId: string,
    nominal: string,
    task: LiveTask,
    { params }: KnownBackfill['request'],
  ): Promise<void> {
    const { store, clock } = this.#options;
    const { definition, revision, namespace } = task;
    const now = clock.now();
    const pinned = { id: this.taskId, revision, definition, namespace };
    const request = runRequestOf(pinned, {
      trigger: 'backfill',
      scheduled_for: nominal,
      priority: BACKFILL_PRIORITY,
      run_at: toIso(now),
      ...(params === undefined ? {} : { params }),
    });
    // Under any policy, a backfill waits for running runs. It never cancels them, and is never
    // skipped because of them.
    const rules =
      definition.overlap_policy === 'allow'
        ? definition
        : { ...definition, overlap_policy: 'queue' as const };
    const context = this.#contextOf(requestCommandId(runId, request), now);
    const requested = await requestRun(store, { runId, request, rules, context });
    if (requested.kind === 'skipped') this.noteEnd(nominal, 'skipped');
    // The run may have been requested earlier, and may have ended before this process listened.
    else await this.#readEnd(runId, nominal);
  }

  async #readEnd(runId: string, nominal: string): Promise<void> {
    const { state } = await load(this.#options.store, streams.run(runId), runFold);
    if (hasEnded(state)) this.noteEnd(nominal, outcomeOf(state));
  }

  async #cancel(runId: string, nominal: string): Promise<void> {
    const { store, clock } = this.#options;
    const now = clock.now();
    const commandId = nameBasedId('backfill cancels', this.id, runId);
    const context = { ...this.#contextOf(commandId, now), reason: 'its backfill was canceled' };
    for (;;) {
      try {
        await cancelRunCommand(store, runId, context);
        break;
      } catch (error) {
        if (!(error instanceof RefusalError)) throw error;
        // The run has ended or was never requested. In the latter case, no process may request it now.
        if (error.code !== 'NOT_FOUND' || (await this.#close(runId, now))) break;
        await this.#readEnd(runId, nominal);
        if (this.#ended.has(nominal)) return;
      }
    }
    await this.#readEnd(runId, nominal);
  }

  /** Closes the stream of a run that was never requested. @returns false when another writer won the race */
  async #close(runId: string, now: Instant): Promise<boolean> {
    const stream = streams.run(runId);
    const data = { reservation: streams.backfill(this.id) };
    const context = this.#contextOf(nameBasedId('backfill closes', this.id, runId), now);
    const events = toNewEvents(stream, [{ type: 'Abandoned', data }], context);
    return (await tryAppend(this.#options.store, stream, events, 'none')) !== null;
  }

  async #select(known: KnownBackfill, task: LiveTask): Promise<Selection> {
    const { request, progress } = known;
    const pinned = await this.#pinned(known);
    const schedule = (this.#schedule ??= scheduleOf(pinned.definition, pinned.anchor));
    const none = nothing(progress.up_to);
    if (nominalTimes(schedule, request, progress.up_to, 1).length === 0) {
      return { ...none, exhausted: true };
    }
    const { overlap_policy } = pinned.definition;
    const unfinished = progress.unfinished.filter((nominal) => !this.#ended.has(nominal));
    const free = effectiveConcurrency(request, overlap_policy) - unfinished.length;
    // While the task is paused, no run is added.
    if (free <= 0 || task.status === 'paused') return none;
    if (overlap_policy !== 'allow' && (await this.#isTaskBusy(pinned))) {
      return { ...none, poll: true };
    }
    return request.only === 'missing'
      ? this.#selectMissing(known, schedule, free)
      : this.#selectAll(known, schedule, free);
  }

  #selectAll({ request, progress }: KnownBackfill, schedule: Schedule, free: number): Selection {
    const taken = nominalTimes(schedule, request, progress.up_to, free);
    const upTo = taken.at(-1) ?? progress.up_to;
    return { ...nothing(upTo), taken, exhausted: taken.length < free };
  }

  /** Selects nominal times without a run, in order, as many as may run now. */
  async #selectMissing(
    { request, progress }: KnownBackfill,
    schedule: Schedule,
    free: number,
  ): Promise<Selection> {
    const { store, earlier } = this.#options;
    // From here on, the schedule has yet to decide. Its decisions will show whether a time has a
    // run.
    const undecided = await firstUndecidedFire(store, this.taskId);
    await earlier.refresh(request);
    const fired = await this.#recentFires();
    const taken: string[] = [];
    let { up_to: upTo } = progress;
    let existing = 0;
    let wanted = free;
    for (let looked = 0; looked < MAX_TIMES_PER_STEP && taken.length < free;) {
      const times = nominalTimes(schedule, request, upTo, wanted);
      if (times.length === 0) return { upTo, taken, existing, exhausted: true, poll: false };
      const has = await haveRuns(store, { ...request, earlier: earlier.ids }, times, fired);
      for (const [index, nominal] of times.entries()) {
        const stop = { upTo, taken, existing, exhausted: false };
        if (earlier.mayStillRun(nominal)) return { ...stop, poll: true };
        if (!has[index] && taken.length >= free) return { ...stop, poll: false };
        if (undecided !== null && nominal >= undecided) return { ...stop, poll: true };
        if (has[index]) existing += 1;
        else taken.push(nominal);
        upTo = nominal;
      }
      looked += times.length;
      wanted = Math.min(2 * times.length, MAX_TIMES_PER_STEP);
    }
    return { upTo, taken, existing, exhausted: false, poll: false };
  }

  /**
   * Nominal times that the schedule fired last: their runs may still be requested, because a fire may be decided late.
   */
  async #recentFires(): Promise<ReadonlySet<string>> {
    const page = { direction: 'backwards', limit: RECENT_FIRES } as const;
    const decisions = await this.#options.store.readStream(streams.fires(this.taskId), page);
    return new Set(
      decisions.flatMap((event) => (event.type === 'Fired' ? [event.data.nominal] : [])),
    );
  }

  /** Whether a run of another origin holds the task or waits for it. */
  async #isTaskBusy({ definition }: LiveTask): Promise<boolean> {
    const { store } = this.#options;
    const places = await placesOfTask(store, this.taskId, definition.created_by);
    return places.some(({ run_id }) => !this.#ownRuns.has(run_id));
  }

  #contextOf(commandId: string, now = this.#options.clock.now()): CommandContext {
    const { name: source, id: correlationId } = this.#options;
    const traceparent = this.#traceparent;
    return { commandId, actor: 'service', source, correlationId, traceparent, now };
  }
}

const nothing = (upTo: string | null): Selection => {
  return { upTo, taken: [], existing: 0, exhausted: false, poll: false };
};

/** A run that was closed before it was requested counts as canceled. */
function outcomeOf({ state }: RunState): BackfillOutcome {
  return state === 'succeeded' || state === 'failed' || state === 'skipped' ? state : 'canceled';
}
