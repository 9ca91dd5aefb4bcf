import type { Instant } from '../../domain/clock.ts';
import {
  isConflict,
  type AppendResult,
  type EventStore,
  type StreamAppend,
} from '../../domain/event-store.ts';
import { occurAt, toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { isUnconditional, requestRun, type RequestRules } from '../../domain/runs/run-request.ts';
import { tzVersion } from '../../domain/schedule/zone.ts';
import { streams } from '../../domain/streams.ts';
import type { FiresDecision, ScheduledRun } from '../../domain/tasks/fires.ts';
import { evolveScheduleState, type ScheduleState } from '../../domain/tasks/schedule-state.ts';
import { dependsOnTzDatabase } from '../../domain/tasks/task-schedule.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { DueEntry } from './due-index.ts';
import {
  ignoreConflict,
  NOT_REQUESTED,
  requestAppend,
  requestCommandId,
} from './request-append.ts';

/** The time and the trace of a decision. */
export interface WriteContext extends Pick<CommandContext, 'now' | 'traceparent'> {
  /** Whether many other tasks are due at the same time. Default: false. */
  readonly isCrowded?: boolean;
}

/** The append of a decision, and those of its runs; the latter only if they are requested unconditionally. */
export interface FireAppends {
  readonly fires: StreamAppend;
  readonly requests: readonly StreamAppend[];
}

/** A decision, with its appends if they were made ahead. */
export interface PreparedFires {
  readonly decision: FiresDecision;
  readonly appends?: FireAppends | undefined;
}

/** Appends decisions with their requests. The default is the event log's `appendInOrder`. */
export interface RequestAppender {
  append(
    appends: FireAppends,
    runs: readonly ScheduledRun[],
    context: WriteContext,
  ): Promise<readonly AppendResult[]>;
}

/** Receives the runs that the scheduler of this process requests. */
export interface RequestObserver {
  /** These runs are being requested. @returns called when they were requested, or could not be */
  leaveToScheduler(runs: readonly Pick<ScheduledRun, 'runId'>[]): () => void;
  noteRequested(runId: string): void;
}

export interface FireWriterOptions {
  readonly store: EventStore;
  readonly telemetry: Telemetry;
  /** Name of this process, for the metadata. */
  readonly name: string;
  readonly requests?: RequestObserver | undefined;
  readonly appender?: RequestAppender | undefined;
}

/** Writes decisions: each to `fires-<task>`, then requests its runs. */
export class FireWriter {
  readonly #options: FireWriterOptions;
  readonly #appender: RequestAppender;

  constructor(options: FireWriterOptions) {
    this.#options = options;
    const { store } = options;
    this.#appender = options.appender ?? {
      append: ({ fires, requests }) => store.appendInOrder([fires, ...requests]),
    };
  }

  /**
   * Builds the events of a decision ahead of time and has the log serialise them, for one untraced {@link write}.
   * @param from when they may be written at the earliest
   */
  prepare(entry: DueEntry, decision: FiresDecision, from: Instant): FireAppends {
    const { store } = this.#options;
    const appends = this.#appendsOf(entry, decision, { now: from });
    store.prepare?.(appends.fires.events);
    for (const { events } of appends.requests) store.prepare?.(events);
    return appends;
  }

  /**
   * @param prepared appends of this decision
   * @returns the schedule state after the decision
   * @throws EventStoreError as the log does; `CONFLICT` when another process has decided
   */
  async write(
    entry: DueEntry,
    decision: FiresDecision,
    context: WriteContext,
    prepared?: FireAppends,
  ): Promise<ScheduleState> {
    const { definition } = entry.state;
    const appends = prepared ?? this.#appendsOf(entry, decision, context);
    if (prepared !== undefined) {
      occurAt(prepared.fires.events, context.now);
      for (const { events } of prepared.requests) occurAt(events, context.now);
    }
    const done = this.#options.requests?.leaveToScheduler(decision.runs);
    let written: Written;
    try {
      written = isUnconditional(definition)
        ? await this.#appendWithRuns(appends, decision.runs, context)
        : await this.#appendThenRequest(appends.fires, decision.runs, definition, context);
    } finally {
      done?.();
    }
    this.#report(decision, written.skipped, context.now);
    return stateAfter(entry.state, decision, appends.fires, written.revision);
  }

  #appendsOf(entry: DueEntry, decision: FiresDecision, context: WriteContext): FireAppends {
    const { taskId, state } = entry;
    const stream = streams.fires(taskId);
    const tz = dependsOnTzDatabase(state.definition) ? tzVersion() : undefined;
    const command = this.#commandOf(newId(context.now), taskId, context, tz);
    const events = toNewEvents(stream, decision.events, command);
    const fires: StreamAppend = { stream, events, expected: state.fires?.revision ?? 'none' };
    const requests: StreamAppend[] = [];
    if (isUnconditional(state.definition)) {
      for (const run of decision.runs)
        requests.push(requestAppend(run, this.#runCommandOf(run, context)));
    }
    return { fires, requests };
  }

  /** Appends the decision with its runs. If a run has been requested already, the rest is appended one by one. */
  async #appendWithRuns(
    appends: FireAppends,
    runs: readonly ScheduledRun[],
    context: WriteContext,
  ): Promise<Written> {
    const { store, requests: observer } = this.#options;
    const { fires, requests } = appends;
    let first: AppendResult | undefined;
    try {
      [first] = await this.#appender.append(appends, runs, context);
    } catch (error) {
      if (!isConflict(error) || error.stream === fires.stream) throw error;
      first = await store.append(fires.stream, fires.events, fires.expected);
      for (const { stream, events, expected } of requests) {
        await store.append(stream, events, expected).catch(ignoreConflict);
      }
    }
    for (const { runId } of runs) observer?.noteRequested(runId);
    return { revision: first?.revision ?? 0, skipped: new Map() };
  }

  /**
   * Appends the decision, then requests each run by the task's dedupe key and overlap policy. The {@link RunRequester},
   * which follows the log, repeats a failed request, as it does after a crash here, and reports its success.
   */
  async #appendThenRequest(
    fires: StreamAppend,
    runs: readonly ScheduledRun[],
    rules: RequestRules,
    context: WriteContext,
  ): Promise<Written> {
    const { store, telemetry, requests } = this.#options;
    const { revision } = await store.append(fires.stream, fires.events, fires.expected);
    const skipped = new Map<string, string>();
    for (const run of runs) {
      try {
        const command = this.#runCommandOf(run, context);
        const requested = await requestRun(store, { ...run, rules, context: command });
        if (requested.kind === 'skipped') skipped.set(run.runId, requested.reason);
        requests?.noteRequested(run.runId);
      } catch (error) {
        telemetry.failures.failed(NOT_REQUESTED, error, { run: run.runId });
      }
    }
    return { revision, skipped };
  }

  #report(decision: FiresDecision, skipped: ReadonlyMap<string, string>, now: Instant): void {
    const { telemetry } = this.#options;
    for (const event of decision.events) {
      if (event.type === 'Fired') {
        const lateness = (now - Date.parse(event.data.nominal)) / 1000;
        telemetry.count('fires_total', { outcome: skipped.get(event.data.run_id) ?? 'run' });
        telemetry.observe('fire_lateness_seconds', Math.max(0, lateness));
      } else if (event.type === 'FiresSkipped') {
        telemetry.count('fires_total', { outcome: event.data.reason }, event.data.count);
      }
    }
  }

  #commandOf(
    commandId: string,
    correlationId: string,
    { now, traceparent }: WriteContext,
    tzVersion?: string,
  ): CommandContext {
    const source = this.#options.name;
    return { commandId, actor: 'service', source, correlationId, traceparent, tzVersion, now };
  }

  #runCommandOf({ runId, request }: ScheduledRun, context: WriteContext): CommandContext {
    return this.#commandOf(requestCommandId(runId, request), runId, context);
  }
}

/** @param revision of the last event of the decision */
function stateAfter(
  before: ScheduleState,
  { events }: FiresDecision,
  fires: StreamAppend,
  revision: number,
): ScheduleState {
  const metadata = fires.events[0]?.metadata;
  if (metadata === undefined) return before;
  let state: ScheduleState | null = before;
  for (const [index, event] of events.entries()) {
    const at = revision - events.length + 1 + index;
    state = evolveScheduleState(state, event, { revision: at, metadata });
  }
  return state ?? before;
}

/** The revision of the decision's last event, and by run why it was skipped. */
interface Written {
  readonly revision: number;
  readonly skipped: ReadonlyMap<string, string>;
}
