import { randomBytes } from 'node:crypto';
import { ArtifactError } from '../../domain/artifacts/artifact-store.ts';
import { RefusalError } from '../../domain/errors.ts';
import { fromIso, type Instant } from '../../domain/clock.ts';
import type { CompiledCall, CompiledStep } from '../../domain/pipeline/compile.ts';
import { evaluateSnapshot, type Expression, type Scope } from '../../domain/pipeline/expression.ts';
import { PipelineError } from '../../domain/pipeline/pipeline-error.ts';
import { isFalsy } from '../../domain/pipeline/jmespath.ts';
import type { PlacedSecrets } from '../../domain/pipeline/placed-secrets.ts';
import { itemName } from '../../domain/pipeline/output.ts';
import { tokenHash } from '../../domain/ids.ts';
import type { Resumption, Wait } from '../../domain/runs/run-waits.ts';
import { DEFAULT_CALLBACK_SECONDS, MAX_FOR_EACH_ITEMS } from '../../domain/pipeline/pipeline.ts';
import { truncateString } from '../../domain/pipeline/json-size.ts';
import type { Span } from '../../observability/telemetry.ts';
import type { Failure } from './call-failure.ts';
import { callTool, type CallOutcome, type EarlierTries } from './pipeline-execution-call.ts';
import { runConcurrently, type Unit } from './pipeline-execution-concurrent.ts';
import type { Progress } from './pipeline-execution-progress.ts';
import type { LogLine } from './step-log.ts';
import { aborted, done, suspended, type StepOutcome } from './step-outcome.ts';
import { traceStep } from '../tracing.ts';

/**
 * Evaluates a step's condition, and records the step if it is skipped or its condition fails. If the condition is met,
 * continues with the step.
 */
export function decide(
  progress: Progress,
  step: Pick<CompiledStep, 'condition' | 'onError' | 'readsScope'>,
  name: string,
  startedAt: Instant,
  scope: () => Scope,
  goOn: () => StepOutcome | Promise<StepOutcome>,
): StepOutcome | Promise<StepOutcome> {
  const skipped = (): StepOutcome => {
    const { readsScope } = step;
    progress.ended({ step: name, status: 'skipped', startedAt, readsScope });
    return done;
  };
  const failed = (error: unknown): StepOutcome => {
    if (!(error instanceof PipelineError)) throw error;
    const failure = { message: error.message, retryable: false };
    return noteFailure(progress, step, name, startedAt, failure);
  };
  let met: boolean | Promise<boolean>;
  try {
    met = isMet(progress, step.condition, scope);
  } catch (error) {
    return failed(error);
  }
  if (met instanceof Promise) return met.then((isRun) => (isRun ? goOn() : skipped()), failed);
  return met ? goOn() : skipped();
}

/** A step about to run, or one item of it. */
interface StepCall {
  readonly progress: Progress;
  readonly step: CompiledCall;
  /** The step, or the item of its `for_each`. */
  readonly name: string;
  readonly startedAt: Instant;
  readonly scope: (callback?: unknown, secrets?: PlacedSecrets) => Scope;
  readonly signal: () => AbortSignal;
}

/** Calls a step's tool, with the step's retries, and records the outcome. */
function runOnce(calling: StepCall, earlier?: EarlierTries): StepOutcome | Promise<StepOutcome> {
  const { progress, step, name, signal } = calling;
  const { span } = progress.environment;
  const callback = step.waitsForCallback ? issueCallback(calling, earlier) : null;
  const scope = (secrets: PlacedSecrets): Scope => calling.scope(callback, secrets);
  const call = (traced?: Span): StepOutcome | Promise<StepOutcome> => {
    const outcome = callTool(progress, step, name, scope, signal, traced, earlier);
    return outcome instanceof Promise
      ? outcome.then((each) => note(calling, each, earlier))
      : note(calling, outcome, earlier);
  };
  return span === undefined
    ? call()
    : traceStep(span, (ended) => progress.errorOf(ended), step.uses, name, call);
}

function note(
  calling: StepCall,
  outcome: CallOutcome,
  earlier: EarlierTries | undefined,
): StepOutcome | Promise<StepOutcome> {
  const { progress, step, name, startedAt } = calling;
  if (outcome.kind === 'aborted') return aborted;
  const { log } = outcome;
  if (outcome.kind === 'failure') {
    if (step.waitsForCallback) progress.stopWaits((each) => each === name);
    return noteFailure(progress, step, name, startedAt, outcome, log);
  }
  if (outcome.kind === 'suspended') {
    const { waitsFor: waits_for, until } = outcome;
    progress.suspend({
      step: name,
      waits_for,
      startedAt,
      until,
      log,
      ...waitOptions(step, earlier),
    });
    return suspended;
  }
  if (step.waitsForCallback) return awaitCallback(calling, log, earlier);
  return noteResult(calling, outcome.result, log);
}

function noteResult(
  calling: StepCall,
  result: unknown,
  log: readonly LogLine[],
): StepOutcome | Promise<StepOutcome> {
  const { progress, step, name, startedAt, signal } = calling;
  const { readsScope } = step;
  const ending = { step: name, status: 'succeeded', result, startedAt, log, readsScope } as const;
  try {
    const keeping = progress.endedWith(ending, signal);
    return keeping === undefined ? done : keptOrFailed(calling, keeping, log);
  } catch (error) {
    return noteFailure(progress, step, name, startedAt, unkeptResult(error), log);
  }
}

/** The outcome of a step whose result is being written to the store of artifacts. */
async function keptOrFailed(
  { progress, step, name, startedAt, signal }: StepCall,
  keeping: Promise<void>,
  log: readonly LogLine[],
): Promise<StepOutcome> {
  try {
    await keeping;
    return done;
  } catch (error) {
    if (signal().aborted) return aborted;
    return noteFailure(progress, step, name, startedAt, unkeptResult(error), log);
  }
}

/** Why a step fails although its tool has succeeded. */
function unkeptResult(error: unknown): Failure {
  const why = error instanceof Error ? error.message : 'unknown';
  if (error instanceof RefusalError) {
    return { message: `its result is too large for the log, and ${why}`, retryable: false };
  }
  return error instanceof ArtifactError
    ? { message: `its result is too large for the log, and ${why}`, retryable: true }
    : { message: `its result is not JSON: ${why}`, retryable: false };
}

function waitOptions(
  { releaseKey }: CompiledCall,
  earlier: EarlierTries | undefined,
): { readonly release_key?: true; readonly tries?: number } {
  return {
    ...(releaseKey ? { release_key: true } : {}),
    ...(earlier === undefined ? {} : { tries: earlier.tries + 1 }),
  };
}

/**
 * Issues the token of a callback. Its hash is recorded before the tool is called, because the callback may arrive
 * before the tool returns. If the call is repeated after a crash, it gets another token, as only the hashes of earlier
 * ones are known. All of them are valid.
 */
function issueCallback(
  { progress, step, name, startedAt }: StepCall,
  earlier: EarlierTries | undefined,
): { readonly url: string; readonly token: string } {
  const token = randomBytes(32).toString('base64url');
  progress.secrets.hide(token);
  const known = progress.waits.of(name);
  const earlierTokens =
    known?.resumed === null && known.waits_for.kind === 'callback'
      ? known.waits_for.token_hashes
      : [];
  const token_hashes = [...earlierTokens, tokenHash(token)];
  const { clock, callbackUrl = (given) => `/callbacks/${given}` } = progress.environment;
  progress.suspend({
    step: name,
    waits_for: { kind: 'callback', token_hashes, calling: true },
    startedAt,
    until: clock.now() + (step.waitMs ?? DEFAULT_CALLBACK_SECONDS * 1000),
    log: [],
    ...waitOptions(step, earlier),
  });
  return { url: callbackUrl(token), token };
}

/** Called when the tool has returned. The step waits for its callback, unless that has already arrived. */
function awaitCallback(
  calling: StepCall,
  log: readonly LogLine[],
  earlier: EarlierTries | undefined,
): StepOutcome | Promise<StepOutcome> {
  const { progress, step, name, startedAt } = calling;
  const wait = progress.waits.of(name);
  if (wait === undefined || wait.waits_for.kind !== 'callback') return aborted;
  if (wait.resumed !== null) return afterWait(calling, { ...wait, log: [...log] }, wait.resumed);
  const { kind, token_hashes } = wait.waits_for;
  const until = fromIso(wait.until);
  const waits_for = { kind, token_hashes };
  progress.suspend({ step: name, waits_for, startedAt, until, log, ...waitOptions(step, earlier) });
  return suspended;
}

/** Continues a suspended step. It still waits, ends with the outcome of its wait, or is retried. */
function continueWait(calling: StepCall, wait: Wait): StepOutcome | Promise<StepOutcome> {
  if (wait.resumed !== null) return afterWait(calling, wait, wait.resumed);
  // A worker died during the tool's call.
  const isCalling = wait.waits_for.kind === 'callback' && wait.waits_for.calling === true;
  return isCalling ? runOnce(calling) : suspended;
}

function afterWait(
  calling: StepCall,
  wait: Wait,
  resumed: Resumption,
): StepOutcome | Promise<StepOutcome> {
  const { progress, step, name, startedAt } = calling;
  const log = [...(wait.log ?? []), ...(resumed.log ?? [])] as readonly LogLine[];
  // A rejected approval has a result. If the step continues on errors, that is the step's result.
  const isResult = resumed.result !== undefined && step.onError === 'continue';
  if (resumed.error === undefined || isResult) {
    return noteResult(calling, resumed.result ?? null, log);
  }
  const failure = { message: resumed.error, retryable: resumed.retryable === true };
  const tries = wait.tries ?? 1;
  if (failure.retryable && tries <= step.maxRetries) {
    return runOnce(calling, { tries, failure });
  }
  return noteFailure(progress, step, name, startedAt, failure, log);
}

/** Records a failure. The step's `on_error` decides whether the run continues. */
export function noteFailure(
  progress: Progress,
  step: Pick<CompiledStep, 'onError' | 'readsScope'>,
  name: string,
  startedAt: Instant,
  failure: Failure,
  log: readonly LogLine[] = [],
): StepOutcome {
  const { message: error } = failure;
  const { readsScope } = step;
  progress.ended({ step: name, status: 'failed', error, startedAt, log, readsScope });
  return step.onError === 'continue' ? done : { kind: 'failed', step: name, failure };
}

/** @throws (or rejects with) PipelineError */
function isMet(
  progress: Progress,
  condition: Expression | boolean | null,
  scope: () => Scope,
): boolean | Promise<boolean> {
  if (condition === null) return true;
  if (typeof condition === 'boolean') return condition;
  const given = scope();
  return progress.evaluate(condition, given, () => !isFalsy(condition.evaluate(given)));
}

/** Runs a step that uses a tool: its condition, its items, its call. @param signal called only when needed */
export function runCall(
  progress: Progress,
  step: CompiledCall,
  signal: () => AbortSignal,
): StepOutcome | Promise<StepOutcome> {
  if (progress.isFinished(step.id)) return done;
  const wait = progress.waits.of(step.id);
  const startedAt = startOf(progress, wait);
  const scope: StepCall['scope'] = (callback, secrets) =>
    progress.scope(startedAt, null, null, callback, secrets);
  const calling = { progress, step, name: step.id, startedAt, scope, signal };
  if (wait !== undefined) return continueWait(calling, wait);
  const { each } = step;
  const run = (): StepOutcome | Promise<StepOutcome> =>
    each === null ? runOnce(calling) : runItems(progress, step, each, startedAt, signal());
  if (step.conditionPerItem || hasBegunItems(progress, step)) return run();
  return decide(progress, step, step.id, startedAt, scope, run);
}

/** The start of a step, or of its earlier execution that is waiting. */
function startOf({ environment }: Progress, wait: Wait | undefined): Instant {
  return wait === undefined ? environment.clock.now() : fromIso(wait.since);
}

/**
 * Runs a step for each item of its array, in order. Each item is a separate step, `<id>[<index>]`. Finished items are
 * skipped. The whole step then ends with `[]` if there was no item, otherwise with null.
 */
async function runItems(
  progress: Progress,
  step: CompiledCall,
  each: NonNullable<CompiledCall['each']>,
  startedAt: Instant,
  signal: AbortSignal,
): Promise<StepOutcome> {
  let items: readonly unknown[];
  try {
    items = await itemsOf(progress, each, progress.scope(startedAt));
    progress.takeItems(step.id, items.length);
  } catch (error) {
    if (!(error instanceof PipelineError)) throw error;
    const failure = { message: error.message, retryable: false };
    return noteFailure(progress, step, step.id, startedAt, failure);
  }
  const run = (item: unknown, index: number, stop: AbortSignal) =>
    runItem(progress, step, index, item, stop);
  const outcome =
    step.maxParallel === 1
      ? await runInTurn(progress, items, (item, index) => run(item, index, signal), signal)
      : await runConcurrently(progress, unitsOf(step, items, run), {
          maxParallel: step.maxParallel,
          signal,
        });
  if (outcome.kind !== 'done') return outcome;
  const result = items.length === 0 ? [] : null;
  const { readsScope } = step;
  progress.ended({ step: step.id, status: 'succeeded', result, startedAt, readsScope });
  return done;
}

function unitsOf(
  step: CompiledCall,
  items: readonly unknown[],
  run: (item: unknown, index: number, signal: AbortSignal) => StepOutcome | Promise<StepOutcome>,
): readonly Unit[] {
  return items.map((item, index) => {
    const name = itemName(step.id, index);
    const owns = (each: string): boolean => each === name;
    return { name, needs: [], owns, run: (signal: AbortSignal) => run(item, index, signal) };
  });
}

/** Whether items of an earlier execution exist, in which the condition was met. */
function hasBegunItems(progress: Progress, { id, each, maxParallel }: CompiledCall): boolean {
  if (each === null) return false;
  // Items start in order.
  const first = Array.from({ length: maxParallel }, (_, index) => itemName(id, index));
  return progress.hasBegun(first);
}

async function runInTurn(
  progress: Progress,
  items: readonly unknown[],
  run: (item: unknown, index: number) => StepOutcome | Promise<StepOutcome>,
  signal: AbortSignal,
): Promise<StepOutcome> {
  for (const [index, item] of items.entries()) {
    const pause = progress.pauseIfDue();
    if (pause) await pause;
    if (signal.aborted) return aborted;
    const outcome = await run(item, index);
    if (outcome.kind !== 'done') return outcome;
  }
  return done;
}

function runItem(
  progress: Progress,
  step: CompiledCall,
  index: number,
  item: unknown,
  signal: AbortSignal,
): StepOutcome | Promise<StepOutcome> {
  const name = itemName(step.id, index);
  if (progress.isFinished(name)) return done;
  const wait = progress.waits.of(name);
  const startedAt = startOf(progress, wait);
  const scope: StepCall['scope'] = (callback, secrets) =>
    progress.scope(startedAt, item, index, callback, secrets);
  const calling = { progress, step, name, startedAt, scope, signal: () => signal };
  if (wait !== undefined) return continueWait(calling, wait);
  if (!step.conditionPerItem) return runOnce(calling);
  return decide(progress, step, name, startedAt, scope, () => runOnce(calling));
}

async function itemsOf(
  progress: Progress,
  each: NonNullable<CompiledCall['each']>,
  scope: Scope,
): Promise<readonly unknown[]> {
  const items: unknown = await progress.evaluate(each, scope, () =>
    'render' in each ? each.render(scope) : evaluateSnapshot(each, scope),
  );
  if (!Array.isArray(items)) {
    const type = items === null ? 'null' : typeof items;
    const text = 'text' in each ? ` "${truncateString(each.text, 200)}"` : '';
    throw new PipelineError(`for_each${text} must give an array, got ${type}`);
  }
  if (items.length > MAX_FOR_EACH_ITEMS) {
    throw new PipelineError(
      `for_each gives ${items.length} items; the limit is ${MAX_FOR_EACH_ITEMS}`,
    );
  }
  return items as readonly unknown[];
}
