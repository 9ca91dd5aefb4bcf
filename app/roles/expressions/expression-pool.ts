import type { Worker } from 'node:worker_threads';
import type { Evaluated } from '../../../domain/pipeline/expression.ts';
import { PipelineError } from '../../../domain/pipeline/pipeline-error.ts';
import type {
  EvaluationOrder,
  ExpressionEvaluator,
} from '../../../scheduler/pipeline/costly-expressions.ts';
import { startThread } from '../../../stores/sqlite/start-thread.ts';
import { usableProcessors } from '../../projecting/parallel-fill/thread-limits.ts';
import {
  KeptRuns,
  type FromExpressionThread,
  type ToExpressionThread,
} from './expression-protocol.ts';

/** One processor stays free for everything else. */
const MAX_THREADS = 4;

/** Milliseconds after which an idle thread ends. */
const IDLE_MS = 30_000;

/** A thread's heap, in MiB. A single value has at most about ten million characters. */
const HEAP = { maxOldGenerationSizeMb: 1_024, maxYoungGenerationSizeMb: 64 } as const;

/** After this many threads have died of an order, it is given up. */
const MAX_ATTEMPTS = 2;

interface Waiting {
  readonly order: EvaluationOrder;
  attempts: number;
  readonly resolve: (values: ReadonlyMap<string, Evaluated>) => void;
  readonly reject: (error: Error) => void;
}

/** The parts of a run that a thread has: `params` and `event`, which never change, and this version of `steps`. */
interface KnownParts {
  readonly stepsVersion: number;
}

/**
 * Threads of low priority that evaluate costly expressions. They start when they are needed, and end when they are idle.
 * Runs take turns, so that one with many items does not keep the others waiting.
 */
export class ExpressionPool implements ExpressionEvaluator {
  readonly #size: number;
  readonly #idleMs: number;
  readonly #threads = new Set<Thread>();
  /** Waiting orders by run. The first run is next. */
  readonly #waiting = new Map<string, Waiting[]>();
  #closed = false;

  /**
   * @param options.size most threads; default: the number of processors minus one, 1 to 4
   * @param options.idleMs milliseconds after which an idle thread ends; default: 30,000
   */
  constructor(options: { readonly size?: number; readonly idleMs?: number } = {}) {
    const forOthers = Math.floor(usableProcessors()) - 1;
    this.#size = options.size ?? Math.max(1, Math.min(MAX_THREADS, forOthers));
    this.#idleMs = options.idleMs ?? IDLE_MS;
  }

  /** Threads that run. */
  get threads(): number {
    return this.#threads.size;
  }

  /**
   * Never settles after {@link close}: the execution is then abandoned, and another process continues its run.
   * @throws (rejects with) PipelineError if the expressions need too much memory, or end their thread repeatedly
   */
  evaluate(order: EvaluationOrder): Promise<ReadonlyMap<string, Evaluated>> {
    return new Promise((resolve, reject) => this.#add({ order, attempts: 0, resolve, reject }));
  }

  /** Ends all threads and abandons all orders. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#waiting.clear();
    await Promise.all(Array.from(this.#threads, (thread) => thread.end()));
  }

  #add(waiting: Waiting): void {
    if (this.#closed) return;
    const { owner } = waiting.order;
    const others = this.#waiting.get(owner);
    if (others === undefined) this.#waiting.set(owner, [waiting]);
    else others.push(waiting);
    this.#assign();
  }

  #assign(): void {
    while (this.#waiting.size > 0) {
      const thread = this.#freeThread();
      if (thread === null) return;
      thread.take(this.#next());
    }
  }

  #freeThread(): Thread | null {
    for (const thread of this.#threads) if (thread.isFree) return thread;
    if (this.#threads.size >= this.#size) return null;
    const thread: Thread = new Thread(this.#idleMs, {
      freed: () => this.#assign(),
      gone: (unfinished, cause) => {
        this.#threads.delete(thread);
        if (unfinished !== null) this.#retry(unfinished, cause);
        if (!this.#closed) this.#assign();
      },
    });
    this.#threads.add(thread);
    return thread;
  }

  #retry(waiting: Waiting, cause: unknown): void {
    const { code } = (cause ?? {}) as { readonly code?: unknown };
    if (code === 'ERR_WORKER_OUT_OF_MEMORY') {
      waiting.reject(new PipelineError('the expressions need too much memory'));
    } else if (waiting.attempts === MAX_ATTEMPTS) {
      waiting.reject(new PipelineError('the thread that evaluates the expressions has ended'));
    } else {
      this.#add(waiting);
    }
  }

  /** The first order of the run whose turn it is. That run moves to the end. */
  #next(): Waiting {
    for (const [owner, orders] of this.#waiting) {
      const first = orders.shift();
      this.#waiting.delete(owner);
      if (orders.length > 0) this.#waiting.set(owner, orders);
      if (first !== undefined) return first;
    }
    throw new Error('no order waits');
  }
}

/** One thread and the order that it works on. */
class Thread {
  readonly #worker: Worker;
  readonly #idleMs: number;
  readonly #known = new KeptRuns<KnownParts>();
  readonly #exited: Promise<void>;
  readonly #freed: () => void;
  #current: Waiting | null = null;
  #idleTimer: NodeJS.Timeout | undefined;
  #isEnding = false;

  /** @param on.gone called when it has ended, with its order and the reason */
  constructor(
    idleMs: number,
    on: {
      readonly freed: () => void;
      readonly gone: (unfinished: Waiting | null, cause: unknown) => void;
    },
  ) {
    this.#idleMs = idleMs;
    this.#freed = on.freed;
    this.#worker = startThread('./expression-thread', import.meta.url, undefined, HEAP);
    this.#worker.unref();
    let cause: unknown;
    this.#worker.on('message', (results: FromExpressionThread) => this.#settle(results));
    this.#worker.on('error', (error) => (cause = error));
    this.#exited = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        this.#isEnding = true;
        clearTimeout(this.#idleTimer);
        on.gone(this.#current, cause);
        resolve();
      });
    });
  }

  get isFree(): boolean {
    return this.#current === null && !this.#isEnding;
  }

  take(waiting: Waiting): void {
    clearTimeout(this.#idleTimer);
    this.#current = waiting;
    waiting.attempts += 1;
    // A thread keeps the process alive only while it works.
    this.#worker.ref();
    try {
      this.#worker.postMessage(this.#messageOf(waiting.order));
    } catch (error) {
      // The value cannot be copied, as it is not JSON. The state of the thread is now unknown.
      this.#current = null;
      this.#isEnding = true;
      void this.#worker.terminate();
      waiting.reject(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Ends it, and abandons its order. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.#current = null;
    await this.#worker.terminate();
    await this.#exited;
  }

  #messageOf({ owner, texts, subject }: EvaluationOrder): ToExpressionThread {
    if (subject.kind === 'value') return { kind: 'value', texts, value: subject.value };
    const { stepsVersion } = subject;
    const { now, task, run, item, index, callback = null, params, event, steps } = subject.scope;
    const known = this.#known.use(owner);
    const shared = {
      ...(known === undefined ? { params, event } : {}),
      ...(known?.stepsVersion === stepsVersion ? {} : { steps }),
    };
    this.#known.keep(owner, { stepsVersion });
    const scope = { now, task, run, item, index, callback };
    return { kind: 'scope', owner, texts, scope, shared };
  }

  #settle(results: FromExpressionThread): void {
    const waiting = this.#current;
    this.#current = null;
    this.#worker.unref();
    const texts = waiting?.order.texts ?? [];
    waiting?.resolve(new Map(results.map((result, index) => [texts[index] ?? '', result])));
    this.#freed();
    if (this.isFree) this.#endLater();
  }

  #endLater(): void {
    this.#idleTimer = setTimeout(() => {
      this.#isEnding = true;
      void this.#worker.terminate();
    }, this.#idleMs).unref();
  }
}
