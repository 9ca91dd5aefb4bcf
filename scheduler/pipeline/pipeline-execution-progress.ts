import { toIso, type Instant } from '../../domain/clock.ts';
import type { StepEnd } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { CompiledCall, CompiledGroup } from '../../domain/pipeline/compile.ts';
import type { Expression, Scope } from '../../domain/pipeline/expression.ts';
import { itemName, resultOf, splitItemName } from '../../domain/pipeline/output.ts';
import { PipelineError } from '../../domain/pipeline/pipeline-error.ts';
import { noPlacedSecrets, type PlacedSecrets } from '../../domain/pipeline/placed-secrets.ts';
import { MAX_FOR_EACH_ITEMS_PER_RUN } from '../../domain/pipeline/pipeline.ts';
import { finishedSteps, storedOutput } from '../../domain/pipeline/progress.ts';
import { Secrets } from '../../domain/pipeline/secrets.ts';
import { jsonBytes } from '../../domain/pipeline/json-size.ts';
import type { Template } from '../../domain/pipeline/template.ts';
import { evaluateAnywhere } from './costly-expressions.ts';
import type { Environment, Execution, Rest, StepRecord } from './execution.ts';
import { keepLargeResult } from './pipeline-execution-artifacts.ts';
import { StepWaits, type Suspending } from './pipeline-execution-waits.ts';
import { RunRoom, sizeOf, type Ending, type Kept } from './run-room.ts';
import { boundedLog, type LogLine } from './step-log.ts';

/** Limits of one append: step ends, and their estimated bytes. */
const MAX_BATCH_STEPS = 100;
const MAX_BATCH_BYTES = 300 * 1024;

/** How long a run may occupy the event loop before it pauses. */
const PAUSE_AFTER_MS = 5;

/** The number of executions of this process so far. */
let executions = 0;

/** The progress of a run: its steps' ends, which of them are recorded, and the results that later steps see. */
export class Progress {
  readonly execution: Execution;
  readonly environment: Environment;
  readonly secrets: Secrets;
  readonly waits: StepWaits;
  readonly #finished: Map<string, StepEnd>;
  /** Results by id and `save_as`; without a prototype, so that any name is free. */
  readonly #results = Object.create(null) as Record<string, unknown>;
  /** Counts the changes of the results. */
  #resultsVersion = 0;
  readonly #ids: ReadonlyMap<string, CompiledCall>;
  /** Names this execution among all of this process. */
  readonly #key: string;
  /** Items of started steps, in this attempt or an earlier one. */
  #items = 0;
  /** Steps whose items have been counted. */
  readonly #counted = new Set<string>();
  readonly #room: RunRoom;
  /** Records that are not written yet, with estimated sizes. */
  #pending: { readonly record: StepRecord; readonly bytes: number }[] = [];
  /** The hashes of the arguments of unfinished steps. */
  readonly #argumentsHashes = new Map<string, string>();
  /** The sizes of log lines that were recorded while their step was still running. */
  readonly #loggedBytes = new Map<string, number>();
  /** The last append of step ends; null before the first. */
  #recording: Promise<void> | null = null;
  #pausedAt: number;

  constructor(execution: Execution, environment: Environment) {
    const { pipeline } = execution;
    this.execution = execution;
    executions += 1;
    this.#key = `${execution.runId}/${executions}`;
    this.environment = environment;
    this.#pausedAt = environment.clock.steady();
    this.secrets = new Secrets(environment.secrets.masked);
    this.#room = new RunRoom(this.secrets);
    this.#ids = callsById(execution);
    this.#finished = finishedSteps(pipeline, execution.finished);
    for (const end of this.#finished.values()) {
      this.#room.addEnd(end);
      if (splitItemName(end.step).index !== null) this.#items += 1;
      this.#show(end);
    }
    this.waits = new StepWaits(execution, environment);
  }

  isFinished(step: string): boolean {
    return this.#finished.has(step);
  }

  /**
   * Counts a step's unfinished items against the limit of the run.
   * @throws PipelineError when the run would exceed MAX_FOR_EACH_ITEMS_PER_RUN
   */
  takeItems(step: string, count: number): void {
    // The step has waited in the meantime, and continues.
    if (this.#counted.has(step)) return;
    this.#counted.add(step);
    let more = 0;
    for (let index = 0; index < count; index += 1) {
      if (!this.isFinished(itemName(step, index))) more += 1;
    }
    if (this.#items + more > MAX_FOR_EACH_ITEMS_PER_RUN) {
      const left = MAX_FOR_EACH_ITEMS_PER_RUN - this.#items;
      throw new PipelineError(
        `for_each gives ${more} more items; the run has ${left} of its ${MAX_FOR_EACH_ITEMS_PER_RUN} items left`,
      );
    }
    this.#items += more;
  }

  /**
   * Records lines of a running step.
   * @returns false if the run has no room for them, which the end of the step then says
   */
  logged(step: string, lines: readonly LogLine[]): boolean {
    const used = this.#loggedBytes.get(step) ?? 0;
    const { lines: log, bytes } = boundedLog(this.secrets, lines, used);
    if (!this.#room.takeLog(bytes)) return false;
    this.#loggedBytes.set(step, used + bytes);
    if (log.length === 0) return true;
    this.#keep({ type: 'RunStepProgressed', data: { step, log } }, bytes);
    // The next flush, or the end of the execution, rejects with its error.
    this.flush().catch(() => {});
    return true;
  }

  /** Notes that a step waits. Its log lines so far can be read at once. */
  suspend({ log, ...suspending }: Suspending & { readonly log: readonly LogLine[] }): void {
    const { step } = suspending;
    if (log.length > 0) this.logged(step, log);
    const suspended = this.waits.suspend(suspending, this.#argumentsHashes.get(step));
    this.#keep(suspended, jsonBytes(suspended.data));
  }

  /** Ends the open waits of steps that are stopped, because another one has failed. */
  stopWaits(steps: (step: string) => boolean): void {
    for (const stopped of this.waits.stop(steps)) this.#keep(stopped, jsonBytes(stopped.data));
  }

  /** Whether one of these steps or items has ended or waits. */
  hasBegun(steps: readonly string[]): boolean {
    return steps.some((step) => this.#finished.has(step) || this.waits.has(step));
  }

  /** Notes the arguments with which a step calls its tool, for the record of its end. */
  calledWith(step: string, argumentsHash: string): void {
    this.#argumentsHashes.set(step, argumentsHash);
  }

  /**
   * The scope of a step's expressions.
   * @param startedAt the start of the step, which is the `now` of all its expressions, so that its end also records the
   *   time that they saw
   */
  scope(
    startedAt: Instant,
    item: unknown = null,
    index: number | null = null,
    callback: unknown = null,
    secrets: PlacedSecrets = noPlacedSecrets,
  ): Scope {
    const { context } = this.execution;
    return {
      now: toIso(startedAt),
      params: context.params,
      steps: this.#results,
      event: context.event,
      task: context.task,
      run: context.run,
      item,
      index,
      callback,
      secrets,
    };
  }

  /**
   * Renders a template or evaluates an expression for a step: at once, or in another thread if it takes long.
   * @throws (or rejects with) PipelineError
   */
  evaluate<T>(of: Template | Expression, scope: Scope, work: () => T): T | Promise<T> {
    return evaluateAnywhere(this.environment.evaluator, this.#key, of, work, () => {
      const { secrets: _secrets, ...rest } = scope;
      return { kind: 'scope', scope: rest, stepsVersion: this.#resultsVersion };
    });
  }

  /** Evaluates an expression of a tool on a value, like {@link evaluate}. */
  evaluateOn<T>(expression: Expression, value: unknown, work: () => T): T | Promise<T> {
    const { evaluator } = this.environment;
    return evaluateAnywhere(evaluator, this.#key, expression, work, () => {
      return { kind: 'value', value };
    });
  }

  /** Adds the end of a step, masked and cut. Later steps see it; `flush` records it. */
  ended(ending: Ending): void {
    this.#end(ending, this.#room.measure(ending, this.#loggedBytes.get(ending.step)));
  }

  /**
   * Like {@link ended}, but a result that is too large for the log becomes an artifact, and later steps see a reference
   * to it.
   * @returns undefined if the step has ended
   * @throws Error for a result that is not JSON; ArtifactError, and then the step has not ended
   */
  endedWith(ending: Ending, signal: () => AbortSignal): Promise<void> | undefined {
    const { environment, execution } = this;
    const kept = this.#room.measure(ending, this.#loggedBytes.get(ending.step));
    const limit = environment.artifacts === undefined ? null : this.#room.limitOfLarge(kept);
    if (limit === null) return this.#end(ending, kept);
    const keeping = keepLargeResult(execution, environment, kept.result, limit, signal());
    return keeping.then((result) => {
      this.#room.addArtifact(result.value);
      this.#end(ending, { ...kept, result });
    });
  }

  #end(ending: Ending, whole: Kept): undefined {
    const kept = this.#room.take(whole);
    const { result, error, log } = kept;
    const { step, status, readsScope } = ending;
    const started_at = toIso(ending.startedAt);
    const arguments_hash = this.#argumentsHashes.get(step) ?? this.waits.of(step)?.arguments_hash;
    const end: StepEnd = {
      step,
      status,
      result: result.value,
      error,
      started_at,
      finished_at: toIso(this.environment.clock.now()),
      attempt: this.execution.attempt,
      log: log.lines,
    };
    if (arguments_hash !== undefined) end.arguments_hash = arguments_hash;
    if (readsScope) end.now = started_at;
    this.#keep({ type: 'RunStepCompleted', data: end }, sizeOf(kept));
    this.#argumentsHashes.delete(step);
    this.waits.ended(step);
    this.#finished.set(end.step, end);
    this.#show(end);
  }

  /** The masked error of an ended step; empty if it has none. */
  errorOf(step: string): string {
    return this.#finished.get(step)?.error ?? '';
  }

  /** Makes a group's results visible under its names. */
  showGroup(group: CompiledGroup): void {
    if (this.#finished.get(group.id)?.status === 'skipped') return;
    const results: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
    for (const { id, saveAs } of group.steps) {
      if (id in this.#results) results[saveAs ?? id] = this.#results[id];
    }
    this.#resultsVersion += 1;
    this.#results[group.id] = results;
    if (group.saveAs !== null) this.#results[group.saveAs] = results;
  }

  /** Resolves when all ended steps are durable. Rejects when the append fails; the run then continues elsewhere. */
  async flush(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#take().map(({ record }) => record);
      const before = this.#recording ?? Promise.resolve();
      this.#recording = before.then(() => this.environment.record(batch));
      // The next flush rejects with it.
      this.#recording.catch(() => {});
    }
    await this.#recording;
  }

  /**
   * Passes on the pending records, for the append of the attempt's last event. If they are too large, they are recorded
   * first.
   * @returns the result of `make`, at once if nothing has to be awaited
   */
  withRest<T>(make: (rest: Rest) => T): T | Promise<T> {
    let bytes = this.execution.pipeline.layoutBytes;
    for (const pending of this.#pending) bytes += pending.bytes;
    const fits = bytes <= MAX_BATCH_BYTES && this.#pending.length <= MAX_BATCH_STEPS;
    const recorded = fits ? this.#recording : this.flush();
    if (recorded === null) return make(this.#takeAll());
    return recorded.then(() => make(this.#takeAll()));
  }

  /** The `output` of the run's last event. */
  output(failedStep: string | null): JsonObject {
    return storedOutput(this.execution.pipeline, this.#finished, failedStep);
  }

  /** Yields the event loop if this run has had it for too long. @returns undefined if not */
  pauseIfDue(): Promise<void> | undefined {
    if (this.environment.clock.steady() - this.#pausedAt < PAUSE_AFTER_MS) return undefined;
    return this.#pause();
  }

  async #pause(): Promise<void> {
    await this.flush();
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#pausedAt = this.environment.clock.steady();
  }

  #keep(record: StepRecord, bytes: number): void {
    this.#pending.push({ record, bytes: bytes + 300 });
  }

  /** Step ends go into the attempt's last event, unless other records stand between them. */
  #takeAll(): Rest {
    const records = this.#pending.splice(0).map(({ record }) => record);
    const steps: StepEnd[] = [];
    for (const { type, data } of records) {
      if (type !== 'RunStepCompleted') return { before: records, steps: [] };
      steps.push(data);
    }
    return { before: [], steps };
  }

  #take(): readonly { readonly record: StepRecord; readonly bytes: number }[] {
    let count = 0;
    let bytes = 0;
    for (const pending of this.#pending) {
      bytes += pending.bytes;
      if (count > 0 && (count === MAX_BATCH_STEPS || bytes > MAX_BATCH_BYTES)) break;
      count += 1;
    }
    return this.#pending.splice(0, count);
  }

  #show(end: StepEnd): void {
    if (end.status === 'skipped') return;
    const { id, index } = splitItemName(end.step);
    const step = this.#ids.get(id);
    // Items become visible as a list, once all have ended.
    if (step === undefined || index !== null) return;
    const result = step.each === null ? resultOf(end) : this.#listOf(id, end);
    this.#resultsVersion += 1;
    this.#results[id] = result;
    if (step.saveAs !== null) this.#results[step.saveAs] = result;
  }

  /** The items' results; without items, the result of the whole step. */
  #listOf(id: string, whole: StepEnd): unknown {
    const list: unknown[] = [];
    for (;;) {
      const end = this.#finished.get(itemName(id, list.length));
      if (!end) return list.length > 0 ? list : resultOf(whole);
      list.push(end.status === 'skipped' ? null : resultOf(end));
    }
  }
}

/** The steps that use a tool, by id; cached per pipeline. */
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
