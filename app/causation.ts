import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { CAUSE_HEADER } from '../api/inner-requests.ts';
import { RefusalError } from '../domain/errors.ts';
import type { EventStore } from '../domain/event-store.ts';
import { depthOf, type Metadata } from '../domain/events/metadata.ts';
import { streams } from '../domain/streams.ts';
import type { CausedKind } from '../domain/vocabulary.ts';
import type { Telemetry } from '../observability/telemetry.ts';

/** The cause of an action: the run whose step acts, or the published event that an extension handles. */
export type Cause = { readonly runId: string } | { readonly publication: Pick<Metadata, 'depth'> };

/** The setting that limits the length of a chain. */
const SETTING = 'SVC_MAX_CAUSATION_DEPTH';

/**
 * The chains in which runs cause runs: by `tasks.run`, by an event that triggers tasks, or by an extension that acts
 * during a step or for an event. Each run and publication records its depth, and a chain that is too long is cut. Tasks
 * that cause each other in a loop therefore come to an end.
 */
export class Causation {
  readonly #store: EventStore;
  readonly #limit: number;
  readonly #telemetry: Pick<Telemetry, 'count' | 'log'>;
  /** The cause on whose behalf an extension's code is running; null once its step or event has ended. */
  readonly #acting = new AsyncLocalStorage<{ cause: Cause | null }>();
  /** Causes of the requests that extensions make to this process, kept until the response. */
  readonly #tickets = new Map<string, Cause>();

  /** @param options.limit the most runs in a chain, at least 1 */
  constructor(options: {
    readonly store: EventStore;
    readonly limit: number;
    readonly telemetry: Pick<Telemetry, 'count' | 'log'>;
  }) {
    this.#store = options.store;
    this.#limit = options.limit;
    this.#telemetry = options.telemetry;
  }

  /** Calls an extension's code for a step or an event. Its actions until the promise settles have this cause. */
  async during<T>(cause: Cause, call: () => Promise<T>): Promise<T> {
    const acting: { cause: Cause | null } = { cause };
    try {
      return await this.#acting.run(acting, call);
    } finally {
      // Connections and timers that the code leaves behind keep its context.
      acting.cause = null;
    }
  }

  /** The cause on whose behalf the running code acts, or null. */
  get present(): Cause | null {
    return this.#acting.getStore()?.cause ?? null;
  }

  /**
   * The depth of an action with this cause: one more than the cause's own depth, which is read from the log. 0 without
   * a cause.
   * @param what for messages and metrics
   * @throws RefusalError `STATE_CONFLICT` where the chain would become longer than the limit
   */
  async depthAfter(cause: Cause | null, what: CausedKind): Promise<number> {
    if (cause === null) return 0;
    const depth =
      1 + depthOf('runId' in cause ? await this.#requestOf(cause.runId) : cause.publication);
    if (depth < this.#limit) return depth;
    const fields = {
      what,
      depth,
      limit: this.#limit,
      ...('runId' in cause ? { run: cause.runId } : {}),
    };
    this.#telemetry.count('loops_cut_total', { what });
    this.#telemetry.log.warn('cut a chain of runs that cause each other', fields);
    const undone = what === 'run' ? 'the run was not requested' : 'the event was not published';
    const why = `its chain of causes has ${depth} runs, and the limit is ${this.#limit} (${SETTING})`;
    const message = `${undone}: ${why}; check whether tasks cause each other in a loop`;
    throw new RefusalError('STATE_CONFLICT', message, { limit: this.#limit, setting: SETTING });
  }

  /** Returns headers by which this process recognises a request of the running code. Call `over` after the response. */
  announce(): { readonly headers: Readonly<Record<string, string>>; readonly over: () => void } {
    const cause = this.present;
    if (cause === null) return { headers: {}, over: () => {} };
    const ticket = randomUUID();
    this.#tickets.set(ticket, cause);
    return {
      headers: { [CAUSE_HEADER]: ticket },
      over: () => void this.#tickets.delete(ticket),
    };
  }

  /** Like {@link depthAfter}, for a request with an announced ticket. 0 for any other ticket. */
  depthOfRequest(ticket: string, what: CausedKind): Promise<number> {
    return this.depthAfter(this.#tickets.get(ticket) ?? null, what);
  }

  async #requestOf(runId: string): Promise<Pick<Metadata, 'depth'>> {
    const stream = streams.run(runId);
    const [first] = await this.#store.readStream(stream, { limit: 1 });
    if (first?.type === 'RunRequested') return first.metadata;
    throw new Error(`${stream} does not begin with the run's request`);
  }
}
