import { toIso, type Instant } from '../../domain/clock.ts';
import type { StepEnd } from '../../domain/events/catalogue.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import type { CompiledCall, CompiledGroup } from '../../domain/pipeline/compile.ts';
import type { Scope } from '../../domain/pipeline/expression.ts';
import { itemName, resultOf, splitName } from '../../domain/pipeline/output.ts';
import { PipelineFault } from '../../domain/pipeline/fault.ts';
import { MOST_ITEMS_OF_RUN } from '../../domain/pipeline/pipeline.ts';
import { finishedSteps, storedOutput } from '../../domain/pipeline/progress.ts';
import { Secrets } from '../../domain/pipeline/secrets.ts';
import {
  bareMarker,
  cutTo,
  jsonBytes,
  MAX_RESULT_BYTES,
  MAX_RUN_BYTES,
  start,
  toPlainJson,
  withinReach,
  type Measured,
} from '../../domain/pipeline/size.ts';
import type { Environment, Execution } from './pipeline-execution.ts';

/** Longest error of a step, in characters. */
const MOST_ERROR = 4000;

/** Step ends that are recorded with one append: so many, and so many bytes (estimated) at most. */
const MOST_AT_ONCE = 100;
const MOST_BYTES_AT_ONCE = 300 * 1024;

/** Longest time that a run keeps the event loop to itself, in milliseconds. */
const BREATH_MS = 5;

/** A step's log, as JSON text. */
const MOST_LOG_BYTES = 64 * 1024;

/** What a step leaves is kept up to here whatever there is already; from here on it is measured, not estimated. */
const LITTLE = 1024;

/** Characters of an error where there is no room for more. */
const LITTLE_ERROR = 250;

export type LogLine = StepEnd['log'][number];

/** How a step ended, as the execution tells it. */
export interface Ending {
  readonly step: string;
  readonly status: StepEnd['status'];
  readonly result?: unknown;
  readonly error?: string;
  readonly startedAt: Instant;
  readonly log?: readonly LogLine[];
}

/** What is kept of a step's end. Sizes are those of JSON text, in bytes. */
interface Kept {
  readonly result: Measured;
  readonly error: string | null;
  readonly log: { readonly lines: LogLine[]; readonly bytes: number };
  readonly bytes: number;
}

/** What a run has done so far: its steps' ends, which of them are recorded, and what later steps see of them. */
export class Progress {
  readonly execution: Execution;
  readonly environment: Environment;
  readonly secrets: Secrets;
  private readonly finished: Map<string, StepEnd>;
  /** Results by id and `save_as`; without a prototype, so that any name is free. */
  private readonly results = Object.create(null) as Record<string, unknown>;
  private readonly ids: ReadonlyMap<string, CompiledCall>;
  /** Items of steps that have begun, in this attempt or before it. */
  private items = 0;
  /** Of all that has ended. Bytes of JSON text. */
  private keptBytes = 0;
  /** Ended but not recorded, with their estimated sizes. */
  private pending: { readonly end: StepEnd; readonly bytes: number }[] = [];
  /** null: nothing was ever recorded. */
  private recording: Promise<void> | null = null;
  private breathedAt = performance.now();

  constructor(execution: Execution, environment: Environment) {
    const { pipeline } = execution;
    this.execution = execution;
    this.environment = environment;
    this.secrets = new Secrets(environment.secrets);
    for (const name of pipeline.secretNames) this.secrets.expect(name);
    this.ids = callsById(execution);
    this.finished = finishedSteps(pipeline, execution.finished);
    for (const end of this.finished.values()) {
      this.keptBytes += jsonBytes([end.result, end.error, end.log]);
      if (splitName(end.step).index !== null) this.items += 1;
      this.show(end);
    }
  }

  isFinished(step: string): boolean {
    return this.finished.has(step);
  }

  /**
   * Takes room for a step's items among those of the run; those that are finished have theirs.
   * @throws PipelineFault where there is not room for so many
   */
  takeItems(step: string, count: number): void {
    let more = 0;
    for (let index = 0; index < count; index += 1) {
      if (!this.isFinished(itemName(step, index))) more += 1;
    }
    if (this.items + more > MOST_ITEMS_OF_RUN) {
      const left = MOST_ITEMS_OF_RUN - this.items;
      throw new PipelineFault(
        `for_each gives ${more} items more, and of the ${MOST_ITEMS_OF_RUN} of a run ${left} are left`,
      );
    }
    this.items += more;
  }

  /** What a step's expressions see. */
  scope(item: unknown = null, index: number | null = null): Scope {
    const { context, pipeline } = this.execution;
    return {
      now: toIso(this.environment.clock.now()),
      params: pipeline.params,
      steps: this.results,
      event: context.event,
      task: context.task,
      run: context.run,
      item,
      index,
      secrets: this.secrets,
    };
  }

  /** Notes that a step has ended: masked, cut, seen by the steps behind it, not recorded yet. */
  ended(ending: Ending): void {
    const { result, error, log, bytes } = this.withinRoom(this.keptOf(ending));
    const end: StepEnd = {
      step: ending.step,
      status: ending.status,
      result: result.value,
      error,
      started_at: toIso(ending.startedAt),
      finished_at: toIso(this.environment.clock.now()),
      attempt: this.execution.attempt,
      log: log.lines,
    };
    this.keptBytes += bytes;
    this.pending.push({ end, bytes: bytes + 300 });
    this.finished.set(end.step, end);
    this.show(end);
  }

  /** The masked error of a step that ended last; for what is said of the run. */
  errorOf(step: string): string {
    return this.finished.get(step)?.error ?? '';
  }

  /** Lets a group's results be seen under its names. */
  showGroup(group: CompiledGroup): void {
    if (this.finished.get(group.id)?.status === 'skipped') return;
    const results: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
    for (const { id, saveAs } of group.steps) {
      if (id in this.results) results[saveAs ?? id] = this.results[id];
    }
    this.results[group.id] = results;
    if (group.saveAs !== null) this.results[group.saveAs] = results;
  }

  /** Resolves when all that has ended is durable. Rejects when it can't be recorded; then the run goes on elsewhere. */
  async flush(): Promise<void> {
    while (this.pending.length > 0) {
      const batch = this.take().map(({ end }) => end);
      const before = this.recording ?? Promise.resolve();
      this.recording = before.then(() => this.environment.record(batch));
      // Whoever waits for the next flush hears of it.
      this.recording.catch(() => {});
    }
    await this.recording;
  }

  /**
   * What is left to be told with the run's end, small enough to go into one event; what is too much for that is
   * recorded first, and what is being recorded is waited for.
   *
   * @returns what is made of it; at once where there is nothing to wait for
   */
  withRest<T>(make: (steps: readonly StepEnd[]) => T): T | Promise<T> {
    let bytes = this.execution.pipeline.layoutBytes;
    for (const pending of this.pending) bytes += pending.bytes;
    const fits = bytes <= MOST_BYTES_AT_ONCE && this.pending.length <= MOST_AT_ONCE;
    const recorded = fits ? this.recording : this.flush();
    if (recorded === null) return make(this.takeAll());
    return recorded.then(() => make(this.takeAll()));
  }

  /** The `output` of the run's last event. */
  output(failedStep: string | null): JsonObject {
    return storedOutput(this.execution.pipeline, this.finished, failedStep);
  }

  /** Lets others have the event loop, when it is time for that; until then nothing. */
  breathe(): Promise<void> | undefined {
    if (performance.now() - this.breathedAt < BREATH_MS) return undefined;
    return this.pause();
  }

  private async pause(): Promise<void> {
    await this.flush();
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.breathedAt = performance.now();
  }

  private takeAll(): readonly StepEnd[] {
    return this.pending.splice(0).map(({ end }) => end);
  }

  private take(): readonly { readonly end: StepEnd; readonly bytes: number }[] {
    let count = 0;
    let bytes = 0;
    for (const pending of this.pending) {
      bytes += pending.bytes;
      if (count > 0 && (count === MOST_AT_ONCE || bytes > MOST_BYTES_AT_ONCE)) break;
      count += 1;
    }
    return this.pending.splice(0, count);
  }

  private keptOf({ result: given, error: told, log: lines = [] }: Ending): Kept {
    const log = this.bounded(lines);
    const result = this.plainResult(given);
    const error = told === undefined ? null : start(this.secrets.maskText(told), MOST_ERROR);
    return { result, error, log, bytes: result.bytes + log.bytes + (error?.length ?? 0) * 3 };
  }

  /** Cut to little where the run would keep too much in all. */
  private withinRoom(kept: Kept): Kept {
    if (kept.bytes <= LITTLE || this.keptBytes + kept.bytes <= MAX_RUN_BYTES) return kept;
    const { bytes } = kept.result;
    const result = bytes <= LITTLE ? kept.result : toPlainJson(bareMarker(bytes));
    const error = kept.error === null ? null : start(kept.error, LITTLE_ERROR);
    const log = kept.log.bytes <= LITTLE ? kept.log : inPlaceOf(kept.log.lines);
    return { result, error, log, bytes: result.bytes + log.bytes + (error?.length ?? 0) * 3 };
  }

  private plainResult(result: unknown): Measured {
    if (result === undefined) return { value: null, bytes: 4 };
    const masked = this.secrets.mask(withinReach(result));
    return cutTo(MAX_RESULT_BYTES, exactly(toPlainJson(masked)));
  }

  /** Masked, and no longer than leaves room for a result in the same event. */
  private bounded(log: readonly LogLine[]): Kept['log'] {
    if (log.length === 0) return { lines: [], bytes: 0 };
    const lines: LogLine[] = [];
    let bytes = 0;
    for (const line of log) {
      const masked = this.secrets.mask(line) as LogLine;
      bytes += jsonBytes(masked);
      if (bytes > MOST_LOG_BYTES) break;
      lines.push(masked);
    }
    return { lines, bytes };
  }

  private show(end: StepEnd): void {
    if (end.status === 'skipped') return;
    const { id, index } = splitName(end.step);
    const step = this.ids.get(id);
    // Items are seen as a list, once all are done.
    if (step === undefined || index !== null) return;
    const result = step.each === null ? resultOf(end) : this.listOf(id, end);
    this.results[id] = result;
    if (step.saveAs !== null) this.results[step.saveAs] = result;
  }

  /** The items' results; of none, what the whole step says: an empty array. */
  private listOf(id: string, whole: StepEnd): unknown {
    const list: unknown[] = [];
    for (;;) {
      const end = this.finished.get(itemName(id, list.length));
      if (!end) return list.length > 0 ? list : resultOf(whole);
      list.push(end.status === 'skipped' ? null : resultOf(end));
    }
  }
}

/** What stands for lines for which there is no room. */
function inPlaceOf([first]: readonly LogLine[]): Kept['log'] {
  if (first === undefined) return { lines: [], bytes: 0 };
  const { at, step } = first;
  const lines = [{ at, level: 'warn', message: 'there is no room for more in the log', step }];
  return { lines, bytes: jsonBytes(lines) };
}

/** The steps that use a tool, by id; kept for each pipeline. */
function callsById({ pipeline }: Execution): ReadonlyMap<string, CompiledCall> {
  let ids = known.get(pipeline);
  if (!ids) {
    const calls = pipeline.steps.flatMap((step) => (step.kind === 'group' ? step.steps : [step]));
    ids = new Map(calls.map((step) => [step.id, step]));
    known.set(pipeline, ids);
  }
  return ids;
}

const known = new WeakMap<object, ReadonlyMap<string, CompiledCall>>();

/**
 * A log line's data, masked, and no larger than makes sense in a log: a copy, as whoever gave it may change it before it
 * is recorded.
 * @throws PipelineFault for what is nested too deep @throws Error for what no JSON can hold
 */
export function logData(secrets: Secrets, data: unknown, limit: number): JsonValue {
  const { value } = cutTo(limit, toPlainJson(secrets.mask(withinReach(data))));
  return JSON.parse(JSON.stringify(value)) as JsonValue;
}

/** An estimate is far too high for long texts, which would be recorded one by one then. */
function exactly(measured: Measured): Measured {
  if (measured.bytes <= LITTLE) return measured;
  return { value: measured.value, bytes: jsonBytes(measured.value) };
}
