import { AsyncLocalStorage } from 'node:async_hooks';
import type { ToolCalled } from '../../api/access/tool-calls.ts';
import type { Clock } from '../../domain/clock.ts';
import { newId } from '../../domain/ids.ts';
import { ExtensionError } from '../../extensions/contract.ts';
import type { RequestOrigin } from '../../extensions/host/ports.ts';
import type { CallSlots } from '../../scheduler/call-slots.ts';

/** How long a tool that nobody waits for any more keeps its slot. Milliseconds. */
const GRACE = 10_000;

/** A tool that a client's request calls, past any run. */
export interface DirectCall {
  readonly tool: string;
  /** The agent in whose name it is called. */
  readonly actAs: string;
  readonly origin: RequestOrigin;
  /** Aborted once nobody waits for the result. */
  readonly signal: AbortSignal;
}

/** Tools that clients call directly: each call takes a slot of the process, and is recorded. */
export class DirectCalls {
  readonly #slots: CallSlots;
  readonly #record: { note(called: ToolCalled): void };
  readonly #clock: Clock;
  /** Set within a call: a tool that calls another one has its slot, and would wait for itself. */
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
   * Carries a call out once there is a slot for it, and records what became of it.
   * @throws ExtensionError `unavailable` where none becomes free in some seconds; what `work` throws
   */
  async carryOut<T>(call: DirectCall, work: () => Promise<T>): Promise<T> {
    const isWithin = this.#within.getStore() === true;
    const giveBack = isWithin ? (): void => {} : await this.#slots.take(call.signal);
    if (giveBack === null) {
      this.#note(call, 'refused', 'unavailable');
      const { limit } = this.#slots;
      const advice = 'try again, or make a task of it';
      const message = `all slots for tools that are called directly are taken: ${advice}`;
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

  /** Records a call that was not allowed. @param code of the error that the client is answered with */
  refused(call: Omit<DirectCall, 'signal'>, code: string): void {
    this.#note(call, 'refused', code);
  }

  /** A tool that ignores that nobody waits for it gives its slot back after a while, as a step of a run does. */
  #release(working: Promise<unknown>, signal: AbortSignal, giveBack: () => void): void {
    let cancel = (): void => {};
    const wait = (): void => {
      cancel = this.#clock.after(GRACE, giveBack, { background: true });
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
    const { tool, actAs, origin } = call;
    const now = this.#clock.now();
    const { source, correlationId, reason } = origin;
    const context = { commandId: newId(now), actor: actAs, source, correlationId, reason, now };
    this.#record.note({ agentId: actAs, tool, outcome, code, context });
  }
}
