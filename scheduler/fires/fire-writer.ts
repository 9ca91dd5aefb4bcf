import type { Instant } from '../../domain/clock.ts';
import {
  isConflict,
  type AppendResult,
  type EventStore,
  type StreamAppend,
} from '../../domain/event-store.ts';
import type { FiresDecision, ScheduledRun } from '../../domain/tasks/fires.ts';
import { occurAt, toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { evolveRhythm, type Rhythm } from '../../domain/tasks/rhythm.ts';
import { isUnconditional, requestRun, type RequestRules } from '../../domain/runs/run-request.ts';
import { streams } from '../../domain/streams.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { DueEntry } from './due-index.ts';
import { ignoreConflict, requestCommandId, requestOf } from './requests-of-runs.ts';
import type { EarlyDraft, EarlyStart, EarlyStarts } from '../runs/run-work.ts';

/** When something is decided, and as a part of which trace. */
export interface Moment extends Pick<CommandContext, 'now' | 'traceparent'> {
  /** Whether many others are decided at the same moment. Default: false */
  readonly isCrowded?: boolean;
}

/** What of writing a decision could be done before its time. */
export interface PreparedFires {
  readonly fires: StreamAppend;
  readonly requests: readonly StreamAppend[];
  /** Of the run, where it may begin early. */
  readonly start: EarlyDraft | null;
}

/** Writes what was decided of a task's fires: the decision to `fires-<task>`, and the runs behind it. */
export class FireWriter {
  private readonly store: EventStore;
  private readonly telemetry: Telemetry;
  private readonly name: string;
  /** The runs that a worker of this process begins in the append that requests them. Default: none. */
  early: EarlyStarts = { draft: () => null, begin: () => null, hold: () => () => {} };
  /** Told of the runs that are requested now; what it answers is called when they were, or could not be. */
  onRequesting: (runs: readonly Pick<ScheduledRun, 'runId'>[]) => () => void = () => () => {};
  /** Told of each run that was requested. */
  onRequested: (runId: string) => void = () => {};

  constructor(options: {
    readonly store: EventStore;
    readonly telemetry: Telemetry;
    readonly name: string;
  }) {
    this.store = options.store;
    this.telemetry = options.telemetry;
    this.name = options.name;
  }

  /**
   * Makes the events of a decision ahead, and has the log serialise them. For one {@link write}, untraced.
   * @param from when they may be written at the earliest
   */
  prepare(entry: DueEntry, decision: FiresDecision, from: Instant): PreparedFires {
    const prepared = this.appendsOf(entry, decision, { now: from });
    const { fires, requests, start } = prepared;
    this.store.prepare?.(fires.events);
    for (const { events } of requests) this.store.prepare?.(events);
    if (start !== null) this.store.prepare?.([start.event]);
    return prepared;
  }

  /**
   * @param prepared of this decision
   * @returns the rhythm as the decision made it
   * @throws EventStoreError all that the log throws; `CONFLICT` where somebody else has decided
   */
  async write(
    entry: DueEntry,
    decision: FiresDecision,
    at: Moment,
    prepared?: PreparedFires,
  ): Promise<Rhythm> {
    const { definition } = entry.rhythm;
    const appends = prepared ?? this.appendsOf(entry, decision, at);
    const { fires, requests } = appends;
    if (prepared !== undefined) {
      occurAt(fires.events, at.now);
      for (const { events } of requests) occurAt(events, at.now);
    }
    const done = this.onRequesting(decision.runs);
    let written: Written;
    try {
      written = isUnconditional(definition)
        ? await this.appendWithRuns(appends, decision.runs, at)
        : await this.appendThenAsk(fires, decision.runs, definition, at);
    } finally {
      done();
    }
    this.report(decision, written.skipped, at.now);
    return evolved(entry.rhythm, decision, fires, written.revision);
  }

  private appendsOf(entry: DueEntry, decision: FiresDecision, at: Moment): PreparedFires {
    const { taskId, rhythm } = entry;
    const stream = streams.fires(taskId);
    const events = toNewEvents(stream, decision.events, this.contextOf(newId(at.now), taskId, at));
    const fires: StreamAppend = { stream, events, expected: rhythm.fires?.revision ?? 'none' };
    if (!isUnconditional(rhythm.definition)) return { fires, requests: [], start: null };
    const { runs } = decision;
    const requests: StreamAppend[] = [];
    for (const run of runs) requests.push(requestOf(run, this.runContextOf(run, at)));
    return { fires, requests, start: this.draftOf(runs, at) };
  }

  private draftOf(runs: readonly ScheduledRun[], { now, traceparent }: Moment): EarlyDraft | null {
    const [run] = runs;
    // Of several runs of one task some could be written and others not: they begin from the log.
    if (run === undefined || runs.length > 1 || traceparent !== undefined) return null;
    return this.early.draft(run.runId, run.request, now);
  }

  /**
   * The decision, then the runs. A run that somebody has requested already is as it should be. One that a worker of
   * this process takes goes to the log together with its start.
   */
  private async appendWithRuns(
    { fires, requests, start: draft }: PreparedFires,
    runs: readonly ScheduledRun[],
    at: Moment,
  ): Promise<Written> {
    // What was not at hand when it was prepared may be now.
    const drafted = draft ?? this.draftOf(runs, at);
    const start = drafted === null ? null : this.early.begin(drafted, at.now);
    let first: AppendResult | undefined;
    let begun: AppendResult | undefined;
    try {
      const appends =
        start === null
          ? [fires, ...requests]
          : withStart(fires, requests, start, at.isCrowded === true);
      [first, begun] = await this.store.appendInOrder(appends);
    } catch (error) {
      start?.failed();
      if (!isConflict(error) || error.stream === fires.stream) throw error;
      first = await this.store.append(fires.stream, fires.events, fires.expected);
      for (const { stream, events, expected } of requests) {
        await this.store.append(stream, events, expected).catch(ignoreConflict);
      }
    }
    if (begun !== undefined) start?.began(begun.revision);
    for (const { runId } of runs) this.onRequested(runId);
    return { revision: first?.revision ?? 0, skipped: new Map() };
  }

  /**
   * The decision, then each run as the task's dedupe key and overlap policy allow. The decision stands once it is
   * written: a run that can't be requested then is made up by whoever follows the log, like that of a
   * scheduler that died here.
   */
  private async appendThenAsk(
    fires: StreamAppend,
    runs: readonly ScheduledRun[],
    rules: RequestRules,
    at: Moment,
  ): Promise<Written> {
    const { revision } = await this.store.append(fires.stream, fires.events, fires.expected);
    const skipped = new Map<string, string>();
    for (const run of runs) {
      try {
        const context = this.runContextOf(run, at);
        const requested = await requestRun(this.store, { ...run, rules, context });
        if (requested.kind === 'skipped') skipped.set(run.runId, requested.reason);
        this.onRequested(run.runId);
      } catch (error) {
        this.telemetry.log.warn('a run could not be requested; it will be made up', {
          run: run.runId,
          error,
        });
      }
    }
    return { revision, skipped };
  }

  private report(
    decision: FiresDecision,
    skipped: ReadonlyMap<string, string>,
    now: Instant,
  ): void {
    for (const event of decision.events) {
      if (event.type === 'Fired') {
        const lateness = (now - Date.parse(event.data.nominal)) / 1000;
        const outcome = skipped.get(event.data.run_id) ?? 'run';
        this.telemetry.count('fires_total', { outcome });
        this.telemetry.observe('fire_lateness_seconds', Math.max(0, lateness));
      } else if (event.type === 'FiresSkipped') {
        this.telemetry.count('fires_total', { outcome: event.data.reason }, event.data.count);
      }
    }
  }

  private contextOf(commandId: string, correlationId: string, at: Moment): CommandContext {
    const { now, traceparent } = at;
    return { commandId, actor: 'service', source: this.name, correlationId, traceparent, now };
  }

  private runContextOf({ runId, request }: ScheduledRun, at: Moment): CommandContext {
    return this.contextOf(requestCommandId(runId, request), runId, at);
  }
}

/**
 * The decision, the request of a run, and its start behind that in the same append. As the run begins here, nobody waits
 * for being told of it.
 */
function withStart(
  { stream, events, expected }: StreamAppend,
  requests: readonly StreamAppend[],
  start: EarlyStart,
  mayBeToldLater: boolean,
): StreamAppend[] {
  const appends = [{ stream, events, expected, mayBeToldLater }];
  for (const request of requests) {
    const both = [...request.events, start.event];
    appends.push({
      stream: request.stream,
      events: both,
      expected: request.expected,
      mayBeToldLater,
    });
  }
  return appends;
}

/** @param revision of the last event of the decision */
function evolved(
  rhythm: Rhythm,
  { events }: FiresDecision,
  fires: StreamAppend,
  revision: number,
): Rhythm {
  const metadata = fires.events[0]?.metadata;
  if (metadata === undefined) return rhythm;
  let made: Rhythm | null = rhythm;
  for (const [index, event] of events.entries()) {
    const at = revision - events.length + 1 + index;
    made = evolveRhythm(made, event, { revision: at, metadata });
  }
  return made ?? rhythm;
}

/** What became of a decision: the revision of its last event, and why which runs do not run. */
interface Written {
  readonly revision: number;
  readonly skipped: ReadonlyMap<string, string>;
}
