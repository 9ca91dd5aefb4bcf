import { toIso, type Instant } from '../../domain/clock.ts';
import type { JsonValue } from '../../domain/json.ts';
import { faultText } from '../../domain/pipeline/arguments.ts';
import type { CompiledCall } from '../../domain/pipeline/compile.ts';
import type { Scope } from '../../domain/pipeline/expression.ts';
import { PipelineFault } from '../../domain/pipeline/fault.ts';
import { MOST_GIVEN, start, writtenLength } from '../../domain/pipeline/size.ts';
import { logData, type LogLine, type Progress } from './pipeline-execution-progress.ts';
import type { Span } from '../../observability/telemetry.ts';
import { ToolError, type Tool, type ToolCall } from '../tools/tool.ts';

/** How a call of a tool came out. */
export type CallOutcome =
  | { readonly kind: 'result'; readonly result: unknown; readonly log: readonly LogLine[] }
  | ({ readonly kind: 'failure'; readonly log: readonly LogLine[] } & Failure)
  /** It was told to stop, and did (or was given up). */
  | { readonly kind: 'aborted' };

export interface Failure {
  readonly message: string;
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
}

/** What is told to stop and does not is given up after so many milliseconds. */
const GIVE_UP_MS = 10_000;

/** Pauses between the tries of one step: doubled each time, up to the second figure. Milliseconds. */
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;

/** A tool that wants a longer pause than this is left to the retry of the run. Milliseconds. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/** A step's log is for people: so many lines, of so many characters, with so many bytes of data each. */
const MOST_LINES = 50;
const MOST_MESSAGE = 1000;
const MOST_DATA_BYTES = 2000;

/**
 * Renders a step's arguments, checks them, and calls its tool, again where the step says so. Answers at once for a
 * synchronous tool; for all others everything before is made durable first.
 */
export function callTool(
  progress: Progress,
  step: CompiledCall,
  name: string,
  scope: () => Scope,
  signal: () => AbortSignal,
  span?: Span,
): CallOutcome | Promise<CallOutcome> {
  const registered = progress.environment.tools.find(step.uses);
  if (!registered) return fault(`there is no tool named ${step.uses}`);
  const { tool, check } = registered;
  let args: JsonValue;
  try {
    args = step.args.constant ? step.args.render(undefinedScope) : step.args.render(scope());
  } catch (error) {
    return fault(messageOf(error));
  }
  if (!step.args.constant && writtenLength(args, MOST_GIVEN) > MOST_GIVEN) {
    return fault(`the arguments for ${step.uses} become too large`);
  }
  if (tool.withoutSecrets) args = progress.secrets.mask(args) as JsonValue;
  const faults = check(args);
  if (faults.length > 0) return fault(`bad arguments for ${step.uses}: ${faultText(faults)}`);
  const call = new Call(progress, step, name, tool, args, signal, span);
  return tool.synchronous === true ? call.synchronous() : call.patient(0);
}

/** Constants never look at it. */
const undefinedScope = {} as Scope;

class Call {
  private readonly progress: Progress;
  private readonly step: CompiledCall;
  private readonly name: string;
  private readonly tool: Tool;
  private readonly args: JsonValue;
  private readonly signalOf: () => AbortSignal;
  private readonly span: Span | undefined;
  private readonly log: LogLine[] = [];

  constructor(
    progress: Progress,
    step: CompiledCall,
    name: string,
    tool: Tool,
    args: JsonValue,
    signalOf: () => AbortSignal,
    span: Span | undefined,
  ) {
    this.progress = progress;
    this.step = step;
    this.name = name;
    this.tool = tool;
    this.args = args;
    this.signalOf = signalOf;
    this.span = span;
  }

  private get signal(): AbortSignal {
    return this.signalOf();
  }

  /** One try without timers; a failure that further tries may heal goes on patiently. */
  synchronous(): CallOutcome | Promise<CallOutcome> {
    let result: unknown;
    try {
      result = this.run(new AboutQuickly(this.about(), this.signalOf));
    } catch (error) {
      const failure = failureOf(error);
      if (this.step.maxRetries > 0 && failure.retryable) return this.patient(1, failure);
      return { kind: 'failure', log: this.log, ...failure };
    }
    // An extension may have said so in error.
    if (result instanceof Promise) return this.settled(result);
    return { kind: 'result', result, log: this.log };
  }

  /** Tries until it works, the tries are used up, or it makes no sense to go on. */
  async patient(tries: number, earlier?: Failure): Promise<CallOutcome> {
    await this.progress.flush();
    let failure = earlier;
    for (let tried = tries; ; tried += 1) {
      if (failure && !(await this.pause(tried, failure))) return { kind: 'aborted' };
      if (this.signal.aborted) return { kind: 'aborted' };
      const outcome = await this.once();
      if (outcome.kind !== 'failure') return outcome;
      failure = outcome;
      const goOn =
        tried < this.step.maxRetries &&
        outcome.retryable &&
        (outcome.retryAfterMs ?? 0) <= LONGEST_RETRY_AFTER_MS;
      if (!goOn) return outcome;
    }
  }

  /** Waits before a further try. @returns false when the signal ended it */
  private async pause(tried: number, { retryAfterMs }: Failure): Promise<boolean> {
    const { clock, random = Math.random } = this.progress.environment;
    const longest = Math.min(FIRST_PAUSE_MS * 2 ** (tried - 1), LONGEST_PAUSE_MS);
    const pause = Math.max(retryAfterMs ?? 0, (0.5 + 0.5 * random()) * longest);
    try {
      await clock.sleep(pause, this.signal);
      return true;
    } catch (error) {
      if (this.signal.aborted) return false;
      throw error;
    }
  }

  private once(): Promise<CallOutcome> {
    const { clock, telemetry } = this.progress.environment;
    const { timeoutMs } = this.step;
    const begun = performance.now();
    const controller = new AbortController();
    return new Promise((resolve) => {
      let cancelGiveUp = (): void => {};
      let over = false;
      const finish = (outcome: CallOutcome): void => {
        // What was given up says later that it has stopped.
        if (over) return;
        over = true;
        cancelTimeout();
        cancelGiveUp();
        this.signal.removeEventListener('abort', stop);
        const labels = { tool: this.tool.name, outcome: outcome.kind };
        telemetry?.observe('tool_call_seconds', (performance.now() - begun) / 1000, labels);
        resolve(outcome);
      };
      const cancelTimeout = clock.after(timeoutMs, () => {
        const message = `timed out after ${timeoutMs / 1000} s (timeout_seconds)`;
        finish({ kind: 'failure', log: [...this.log], message, retryable: true });
        controller.abort(new Error(message));
      });
      const stop = (): void => {
        cancelTimeout();
        cancelGiveUp = clock.after(GIVE_UP_MS, () => finish({ kind: 'aborted' }));
        controller.abort(this.signal.reason);
      };
      this.signal.addEventListener('abort', stop, { once: true });
      void this.settled(this.started(controller.signal)).then((outcome) => {
        // What fails after it was told to stop has stopped; what succeeds nevertheless has been done.
        const stopped = outcome.kind === 'failure' && this.signal.aborted;
        finish(stopped ? { kind: 'aborted' } : outcome);
      });
    });
  }

  /** Runs the tool; what it throws at once is a rejection too. */
  private async started(signal: AbortSignal): Promise<unknown> {
    return this.run({ ...this.about(), signal });
  }

  private run(about: ToolCall): unknown {
    const { span } = this;
    if (span === undefined) return this.tool.run(this.args, about);
    return span.within(() => this.tool.run(this.args, about));
  }

  /** Never rejects. */
  private async settled(result: Promise<unknown>): Promise<CallOutcome> {
    try {
      return { kind: 'result', result: await result, log: this.log };
    } catch (error) {
      return { kind: 'failure', log: this.log, ...failureOf(error) };
    }
  }

  private about(): Omit<ToolCall, 'signal'> {
    const { execution, environment } = this.progress;
    const { runId, taskId, actAs } = execution;
    const about = {
      idempotencyKey: `${runId}:${this.name}`,
      clock: environment.clock,
      runId,
      taskId,
      step: this.name,
      actAs,
      mask: (text: string) => this.progress.secrets.maskText(text),
      log: (level: string, message: string, data?: unknown) =>
        this.addLine(environment.clock.now(), level, message, data),
    };
    return this.span === undefined ? about : { ...about, span: this.span };
  }

  private addLine(now: Instant, level: string, message: string, data: unknown): void {
    if (this.log.length > MOST_LINES) return;
    const full = this.log.length === MOST_LINES;
    this.log.push({
      at: toIso(now),
      level: full ? 'warn' : level,
      // Masked before it is cut, lest a piece of a secret be left.
      message: full
        ? `this step says no more than ${MOST_LINES} lines`
        : start(this.progress.secrets.maskText(message), MOST_MESSAGE),
      step: this.name,
      ...(data === undefined || full
        ? {}
        : { data: logData(this.progress.secrets, data, MOST_DATA_BYTES) }),
    });
  }
}

/**
 * For a tool that answers at once: its signal is made only when it is asked for. A class, as a literal with a getter
 * would cost more than such a call.
 */
class AboutQuickly implements ToolCall {
  readonly idempotencyKey: string;
  readonly clock: ToolCall['clock'];
  readonly runId: string;
  readonly taskId: string;
  readonly step: string;
  readonly actAs: string;
  readonly mask: ToolCall['mask'];
  readonly log: ToolCall['log'];
  readonly span?: Span;
  private readonly signalOf: () => AbortSignal;

  constructor(about: Omit<ToolCall, 'signal'>, signalOf: () => AbortSignal) {
    this.idempotencyKey = about.idempotencyKey;
    this.clock = about.clock;
    this.runId = about.runId;
    this.taskId = about.taskId;
    this.step = about.step;
    this.actAs = about.actAs;
    this.mask = about.mask;
    this.log = about.log;
    this.signalOf = signalOf;
    if (about.span !== undefined) this.span = about.span;
  }

  get signal(): AbortSignal {
    return this.signalOf();
  }
}

function fault(message: string): CallOutcome {
  return { kind: 'failure', log: [], message, retryable: false };
}

/**
 * What an error says about trying again: faults of the pipeline never heal, unknown errors may. Never throws, whatever
 * was thrown.
 */
function failureOf(error: unknown): Failure {
  const message = messageOf(error);
  try {
    if (error instanceof PipelineFault) return { message, retryable: false };
    if (error instanceof ToolError) return { message, ...retryingOf(error) };
  } catch {
    // It throws when it is looked at, which says nothing about trying again.
  }
  return { message, retryable: true };
}

/** An extension may have got hold of such an error, and have changed it. */
function retryingOf(error: ToolError): Omit<Failure, 'message'> {
  const retryable = error.retryable !== false;
  const { retryAfterMs } = error;
  const isLength = typeof retryAfterMs === 'number' && Number.isFinite(retryAfterMs);
  return isLength ? { retryable, retryAfterMs } : { retryable };
}

/** The first text that it gives of itself. Never throws: whoever made an error may have put a trap in its place. */
function messageOf(error: unknown): string {
  try {
    const said: readonly unknown[] = error instanceof Error ? [error.message, error.name] : [error];
    const text = said.find((each) => typeof each === 'string' && each !== '');
    if (typeof text === 'string') return text;
  } catch {
    // Then it does not say why.
  }
  return 'the tool failed without saying why';
}
