import { AsyncLocalStorage } from 'node:async_hooks';
import type { ToolCalled } from '../../api/access/tool-calls.ts';
import type { Clock } from '../../domain/clock.ts';
import { newId } from '../../domain/ids.ts';
import { ExtensionError } from '../../extensions/contract.ts';
import type { RequestOrigin } from '../../extensions/host/ports.ts';
import type { CallSlots } from '../../scheduler/call-slots.ts';

/** How long an abandoned tool call keeps its slot. Milliseconds. */
const ABANDONED_GRACE = 10_000;

/** A tool call by a client's request, outside of runs. */
export interface DirectCall {
  readonly tool: string;
  /** The calling agent. */
  readonly actAs: string;
  /** The namespace of that agent. */
  readonly namespace: string;
  readonly origin: RequestOrigin;
  /** Aborted when the client no longer waits. */
  readonly signal: AbortSignal;
}

/** Direct calls of tools. Each takes a slot of the process and is recorded. */
export class DirectCalls {
  readonly #slots: CallSlots;
  readonly #record: { note(called: ToolCalled): void };
  readonly #clock: Clock;
  /** Set within a call. A tool that calls another tool shares its slot; otherwise it would wait for itself. */
  readonly #within = new AsyncLocalStorage<true>();

  constructor(options: {
    readonly slots: CallSlots;
    readonly record: { note(called: ToolCalled): void };
    readonly clock: Clock;
  }) {
    this.#slots = options.slots;
    this.#record = options.record;
    this.#clock = options.clock;
  }

  /**
   * Waits for a slot, makes the call and records its outcome.
   * @throws ExtensionError `unavailable` if no slot becomes free within some seconds; errors of `work`
   */
  async carryOut<T>(call: DirectCall, work: () => Promise<T>): Promise<T> {
    const isWithin = this.#within.getStore() === true;
    const giveBack = isWithin ? (): void => {} : await this.#slots.take(call.signal);
    if (giveBack === null) {
      this.#note(call, 'refused', 'unavailable');
      const { limit } = this.#slots;
      const advice = 'try again, or create a task for it';
      const message = `all slots for direct tool calls are taken: ${advice}`;
      throw new ExtensionError('unavailable', message, { component: 'workers', limit });
    }
    const working = this.#within.run(true, work);
    this.#release(working, call.signal, giveBack);
    try {
      const result = await working;
      this.#note(call, 'done', null);
      return result;
    } catch (error) {
      this.#note(call, 'failed', error instanceof ExtensionError ? error.code : 'tool_failed');
      throw error;
    }
  }

  /** Records a rejected call. @param code of the error in the response */
  refused(call: Omit<DirectCall, 'signal'>, code: string): void {
    this.#note(call, 'refused', code);
  }

  /** A tool that ignores the abort signal gives its slot back after a while, as a step of a run does. */
  #release(working: Promise<unknown>, signal: AbortSignal, giveBack: () => void): void {
    let cancel = (): void => {};
    const wait = (): void => {
      cancel = this.#clock.after(ABANDONED_GRACE, giveBack, { background: true });
    };
    if (signal.aborted) wait();
    else signal.addEventListener('abort', wait, { once: true });
    const ended = (): void => {
      signal.removeEventListener('abort', wait);
      cancel();
      giveBack();
    };
    void working.then(ended, ended);
  }

  #note(
    call: Omit<DirectCall, 'signal'>,
    outcome: ToolCalled['outcome'],
    code: string | null,
  ): void {
    const { tool, actAs, namespace, origin } = call;
    const now = this.#clock.now();
    const { source, correlationId, reason } = origin;
    const context = {
      commandId: newId(now),
      actor: actAs,
      namespace,
      source,
      correlationId,
      reason,
      now,
    };
    this.#record.note({ agentId: actAs, tool, outcome, code, context });
  }
}
