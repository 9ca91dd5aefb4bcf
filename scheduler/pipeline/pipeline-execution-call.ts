import { isDeepStrictEqual } from 'node:util';
import { notPermitted } from '../../domain/agents/permissions.ts';
import { toIso, type Instant } from '../../domain/clock.ts';
import type { JsonValue } from '../../domain/json.ts';
import { formatErrors } from '../../domain/pipeline/arguments.ts';
import type { CompiledCall } from '../../domain/pipeline/compile.ts';
import type { Expression, Scope } from '../../domain/pipeline/expression.ts';
import { PlacedSecrets, noPlacedSecrets } from '../../domain/pipeline/placed-secrets.ts';
import { DEFAULT_JOB_SECONDS } from '../../domain/pipeline/pipeline.ts';
import { MAX_VALUE_LENGTH, approximateLength } from '../../domain/pipeline/json-size.ts';
import type { WaitsFor } from '../../domain/runs/run-waits.ts';
import type { Secret } from '../../domain/secrets/secret-source.ts';
import type { Span } from '../../observability/telemetry.ts';
import type { RegisteredTool } from '../tools/registry.ts';
import { Suspension, type Tool, type ToolCall } from '../tools/tool.ts';
import { failureOf, messageOf, type Failure } from './call-failure.ts';
import { hashOf, renderArguments } from './pipeline-execution-arguments.ts';
import type { Progress } from './pipeline-execution-progress.ts';
import { unlessDenied } from './permitted-call.ts';
import { StepLog, type LogLine } from './step-log.ts';
import { openSecrets } from './step-secrets.ts';

/** How a try of a tool ended. */
type TryOutcome =
  | { readonly kind: 'result'; readonly result: unknown }
  | ({ readonly kind: 'failure' } & Failure)
  /** The tool was asked to stop, and stopped or was abandoned. */
  | { readonly kind: 'aborted' }
  /** The step waits. */
  | { readonly kind: 'suspended'; readonly waitsFor: WaitsFor; readonly until: Instant };

/** How a call of a tool ended, with its log lines that are not recorded yet. */
export type CallOutcome = TryOutcome & { readonly log: readonly LogLine[] };

/** The tries of a step whose last one failed while the step waited. */
export interface EarlierTries {
  readonly tries: number;
  readonly failure: Failure;
}

/** A tool that has not stopped this long after its signal is abandoned. */
const STOP_TIMEOUT_MS = 10_000;

/** Pauses between the tries of one step: doubled each time, up to the maximum. */
const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 10_000;

/** The longest wait that a tool can request within a step. Longer waits are left to a retry of the run. */
const MAX_RETRY_AFTER_MS = 60_000;

/**
 * Renders and checks a step's arguments, then calls its tool, with the retries of the step. Returns at once for a
 * synchronous tool. Before any other tool is called, all earlier steps are made durable. A step of an external tool
 * waits for a worker's result. The step's secrets are opened first.
 */
export function callTool(
  progress: Progress,
  step: CompiledCall,
  name: string,
  scope: (secrets: PlacedSecrets) => Scope,
  signal: () => AbortSignal,
  span?: Span,
  earlier?: EarlierTries,
): CallOutcome | Promise<CallOutcome> {
  const registered = progress.environment.tools.find(step.uses);
  if (!registered) return permanentFailure(`there is no tool named ${step.uses}`);
  const calling = { progress, step, name, signal, span, earlier };
  if (step.secretPlaces.length === 0) {
    return renderAndCall(registered, () => scope(noPlacedSecrets), { ...calling, secrets: [] });
  }
  return openSecrets(progress, step, name, registered.tool).then(
    (secrets) => {
      const placed = new PlacedSecrets(new Map(secrets.map(({ name, value }) => [name, value])));
      return renderAndCall(registered, () => scope(placed), { ...calling, secrets });
    },
    (error: unknown): CallOutcome => ({ kind: 'failure', log: [], ...failureOf(error) }),
  );
}

/** Renders the arguments of a step whose secrets are open, then calls its tool. */
function renderAndCall(
  registered: RegisteredTool,
  scope: () => Scope,
  calling: Calling,
): CallOutcome | Promise<CallOutcome> {
  const call = (args: JsonValue): CallOutcome | Promise<CallOutcome> =>
    callWith(args, registered, calling);
  const failed = (error: unknown): CallOutcome => permanentFailure(messageOf(error));
  let rendered: JsonValue | Promise<JsonValue>;
  try {
    rendered = renderArguments(calling.progress, calling.step, scope);
  } catch (error) {
    return failed(error);
  }
  return rendered instanceof Promise ? rendered.then(call, failed) : call(rendered);
}

/** A call of a tool whose arguments are rendered. */
interface Calling {
  readonly progress: Progress;
  readonly step: CompiledCall;
  readonly name: string;
  readonly signal: () => AbortSignal;
  readonly span: Span | undefined;
  readonly earlier: EarlierTries | undefined;
  /** The secrets in the arguments. */
  readonly secrets: readonly Secret[];
}

/** Checks rendered arguments, then calls the tool. */
function callWith(
  rendered: JsonValue,
  { tool, check }: RegisteredTool,
  { progress, step, name, signal, span, earlier, secrets }: Calling,
): CallOutcome | Promise<CallOutcome> {
  let args = rendered;
  if (!step.args.constant && approximateLength(args, MAX_VALUE_LENGTH) > MAX_VALUE_LENGTH) {
    return permanentFailure(`the arguments for ${step.uses} are too large`);
  }
  const masked = progress.secrets.mask(args) as JsonValue;
  if (tool.withoutSecrets) args = masked;
  progress.calledWith(name, hashOf(step.args, args, masked));
  const isOlder = progress.execution.taskCreatedAt < (tool.schemaSince ?? '');
  const errors = isOlder ? [] : check(args);
  if (errors.length > 0) {
    return permanentFailure(`bad arguments for ${step.uses}: ${formatErrors(errors)}`);
  }
  const isRecorded = tool.isExternal === true || tool.recordsArguments === true;
  if (isRecorded && !isDeepStrictEqual(masked, args)) {
    return permanentFailure(`arguments for ${step.uses} contain a secret, and ${recordedAs(tool)}`);
  }
  const offer = (): CallOutcome => jobOf(progress, step, args, earlier);
  if (tool.isExternal === true) return unlessDenied(progress.environment, offer, permanentFailure);
  const call = new Call({ progress, step, name, tool, args, signal, span, secrets });
  if (earlier !== undefined) return call.runWithRetries(earlier.tries, earlier.failure);
  const isAtOnce = tool.synchronous === true && !step.waitsForCallback;
  return isAtOnce ? call.runOnce() : call.runWithRetries(0);
}

/** Why arguments must not contain a secret, and the remedy. */
function recordedAs({ isExternal }: Tool): string {
  return isExternal === true
    ? 'a job records them: let the worker read the secret itself'
    : 'a wait records them: use a value that is not a secret';
}

/** The job for a worker. */
function jobOf(
  progress: Progress,
  step: CompiledCall,
  args: JsonValue,
  earlier: EarlierTries | undefined,
): CallOutcome {
  const { clock, random = Math.random } = progress.environment;
  const now = clock.now();
  const waitsFor: WaitsFor = {
    kind: 'job',
    tool: step.uses,
    arguments: args,
    timeout_seconds: step.timeoutMs / 1000,
    priority: progress.execution.priority,
    ...(Object.keys(step.labels).length === 0 ? {} : { labels: step.labels }),
    ...(earlier === undefined
      ? {}
      : { not_before: toIso(now + pauseAfter(earlier.tries, earlier.failure, random)) }),
  };
  const until = now + (step.waitMs ?? DEFAULT_JOB_SECONDS * 1000);
  return { kind: 'suspended', waitsFor, until, log: [] };
}

/** Milliseconds before the next try. @param tried the number of tries so far */
function pauseAfter(tried: number, { retryAfterMs }: Failure, random: () => number): number {
  const longest = Math.min(FIRST_PAUSE_MS * 2 ** (tried - 1), MAX_PAUSE_MS);
  return Math.max(retryAfterMs ?? 0, (0.5 + 0.5 * random()) * longest);
}

interface CallOptions {
  readonly progress: Progress;
  readonly step: CompiledCall;
  /** The step, or the item of a `for_each`. */
  readonly name: string;
  readonly tool: Tool;
  readonly args: JsonValue;
  readonly signal: () => AbortSignal;
  readonly span: Span | undefined;
  /** The secrets in the arguments. */
  readonly secrets: readonly Secret[];
}

class Call {
  readonly #options: CallOptions;
  readonly #log: StepLog;

  constructor(options: CallOptions) {
    this.#options = options;
    const { progress, name: step } = options;
    const { secrets, environment } = progress;
    const record = (lines: readonly LogLine[]): boolean => progress.logged(step, lines);
    this.#log = new StepLog({ step, clock: environment.clock, secrets, record });
  }

  get #signal(): AbortSignal {
    return this.#options.signal();
  }

  /** One try without timers. A retryable failure continues with {@link runWithRetries}. */
  runOnce(): CallOutcome | Promise<CallOutcome> {
    let result: unknown;
    try {
      result = this.#run(this.#options.signal);
    } catch (error) {
      const failure = failureOf(error);
      if (this.#options.step.maxRetries > 0 && failure.retryable) {
        return this.runWithRetries(1, failure);
      }
      return this.#ended({ kind: 'failure', ...failure });
    }
    // An extension may have called its tool synchronous in error.
    if (result instanceof Promise) {
      this.#log.goLive();
      return this.#outcomeOf(result).then((outcome) => this.#ended(outcome));
    }
    return this.#ended(resulting(result));
  }

  /** The outcome with the log lines that are not recorded yet. */
  #ended(outcome: TryOutcome): CallOutcome {
    return { ...outcome, log: this.#log.close() };
  }

  /** Tries until the tool succeeds, fails permanently, or has used up the step's retries. */
  async runWithRetries(tries: number, earlier?: Failure): Promise<CallOutcome> {
    this.#log.goLive();
    try {
      return this.#ended(await this.#tries(tries, earlier));
    } finally {
      this.#log.close();
    }
  }

  async #tries(tries: number, earlier: Failure | undefined): Promise<TryOutcome> {
    const { progress, step } = this.#options;
    await progress.flush();
    let failure = earlier;
    for (let tried = tries; ; tried += 1) {
      if (failure && !(await this.#pause(tried, failure))) return { kind: 'aborted' };
      if (this.#signal.aborted) return { kind: 'aborted' };
      const denial = (await progress.environment.denial?.()) ?? null;
      if (denial !== null) return permanentFailure(notPermitted(denial));
      const outcome = await this.#runWithTimeout();
      if (outcome.kind !== 'failure') return outcome;
      failure = outcome;
      const isRetried =
        tried < step.maxRetries &&
        outcome.retryable &&
        (outcome.retryAfterMs ?? 0) <= MAX_RETRY_AFTER_MS;
      if (!isRetried) return outcome;
    }
  }

  /** Waits before the next try. @returns false if the signal ended the wait */
  async #pause(tried: number, failure: Failure): Promise<boolean> {
    const { clock, random = Math.random } = this.#options.progress.environment;
    try {
      await clock.sleep(pauseAfter(tried, failure, random), this.#signal);
      return true;
    } catch (error) {
      if (this.#signal.aborted) return false;
      throw error;
    }
  }

  #runWithTimeout(): Promise<TryOutcome> {
    const { progress, step, tool } = this.#options;
    const { clock, telemetry } = progress.environment;
    const begun = performance.now();
    const controller = new AbortController();
    return new Promise((resolve) => {
      let cancelStopTimeout = (): void => {};
      let finished = false;
      const finish = (outcome: TryOutcome): void => {
        // An abandoned tool may still answer.
        if (finished) return;
        finished = true;
        cancelTimeout();
        cancelStopTimeout();
        this.#signal.removeEventListener('abort', stop);
        const labels = { tool: tool.name, outcome: outcome.kind };
        telemetry?.observe('tool_call_seconds', (performance.now() - begun) / 1000, labels);
        resolve(outcome);
      };
      const cancelTimeout = clock.after(step.timeoutMs, () => {
        const message = `timed out after ${step.timeoutMs / 1000} s (timeout_seconds)`;
        finish({ kind: 'failure', message, retryable: true });
        controller.abort(new Error(message));
      });
      const stop = (): void => {
        cancelTimeout();
        cancelStopTimeout = clock.after(STOP_TIMEOUT_MS, () => finish({ kind: 'aborted' }));
        controller.abort(this.#signal.reason);
      };
      this.#signal.addEventListener('abort', stop, { once: true });
      void this.#outcomeOf(this.#runAsync(controller.signal)).then((outcome) => {
        // A failure after the signal means that the tool has stopped; a success still counts.
        const stopped = outcome.kind === 'failure' && this.#signal.aborted;
        finish(stopped ? { kind: 'aborted' } : outcome);
      });
    });
  }

  /** Runs the tool. An error that it throws synchronously becomes a rejection. */
  async #runAsync(signal: AbortSignal): Promise<unknown> {
    return this.#run(() => signal);
  }

  #run(signal: () => AbortSignal): unknown {
    const { tool, args, span } = this.#options;
    const context = new ToolContext(this.#options, this.#log.add, signal);
    return span === undefined
      ? tool.run(args, context)
      : span.within(() => tool.run(args, context));
  }

  /** Never rejects. */
  async #outcomeOf(result: Promise<unknown>): Promise<TryOutcome> {
    try {
      return resulting(await result);
    } catch (error) {
      return { kind: 'failure', ...failureOf(error) };
    }
  }
}

/**
 * The context that a tool receives. It is a class, because a literal with a getter is slow. The signal is created only
 * if the tool reads it.
 */
class ToolContext implements ToolCall {
  readonly idempotencyKey: string;
  readonly clock: ToolCall['clock'];
  readonly runId: string;
  readonly taskId: string;
  readonly step: string;
  readonly attempt: number;
  readonly actAs: string;
  readonly namespace: string;
  readonly mask: ToolCall['mask'];
  readonly log: ToolCall['log'];
  readonly secrets: readonly Secret[];
  readonly span?: Span;
  readonly #signal: () => AbortSignal;
  readonly #progress: Progress;

  constructor(
    { progress, name, span, secrets: opened }: CallOptions,
    log: ToolCall['log'],
    signal: () => AbortSignal,
  ) {
    const { execution, environment, secrets } = progress;
    this.idempotencyKey = `${execution.runId}:${name}`;
    this.clock = environment.clock;
    this.runId = execution.runId;
    this.taskId = execution.taskId;
    this.step = name;
    this.attempt = execution.attempt;
    this.actAs = execution.actAs;
    this.namespace = execution.namespace;
    this.mask = (text) => secrets.maskText(text);
    this.log = log;
    this.secrets = opened;
    this.#signal = signal;
    this.#progress = progress;
    if (span !== undefined) this.span = span;
  }

  get signal(): AbortSignal {
    return this.#signal();
  }

  evaluateOn<T>(expression: Expression, value: unknown, work: () => T): T | Promise<T> {
    return this.#progress.evaluateOn(expression, value, work);
  }
}

function resulting(result: unknown): TryOutcome {
  if (!(result instanceof Suspension)) return { kind: 'result', result };
  const { waitsFor, until } = result;
  return { kind: 'suspended', waitsFor, until };
}

function permanentFailure(message: string): CallOutcome {
  return { kind: 'failure', log: [], message, retryable: false };
}
