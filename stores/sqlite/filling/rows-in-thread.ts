import type { Worker } from 'node:worker_threads';
import type { Position } from '../../../domain/event-store.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { ReadModelError } from '../../../projections/read-model.ts';
import { fenced } from '../read-model/rows-here.ts';
import { startThread } from '../read-model/start-thread.ts';
import type { KeptRow, KnownRow, RowBatch, ViewRows } from '../read-model/view-rows.ts';
import { carried } from './carried-error.ts';
import { packBatch } from './packed-batch.ts';
import type { FillCall, FillOrder, FillResult, FillResults, FromFilling } from './protocol.ts';

/**
 * Batches that are handed over and not written yet, at most, when the next may be made: one that is being written, and
 * one that is there when that is done.
 */
const UNDER_WAY = 2;

/**
 * The heap of the thread: room for a few batches, which are thrown away as soon as they are in the file. MiB; taken only
 * as it is needed.
 */
const HEAP = { maxYoungGenerationSizeMb: 32 } as const;

interface Waiting {
  readonly resolve: (result: FillResult) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The rows of a generation that is being filled, written by a thread of its own: a batch counts as written as soon as it
 * is handed over. Nothing is promised by that, as a fill commits only now and then: what was not, comes again. Once a
 * batch has failed, or the thread has died, every call says so.
 */
export class RowsInThread implements ViewRows {
  readonly #order: FillOrder;
  readonly #worker: Worker;
  readonly #gone: Promise<void>;
  readonly #ready: Promise<boolean>;
  /** What was asked and not answered, in its order. */
  readonly #waiting: Waiting[] = [];
  #state: 'starting' | 'ready' | 'gone' = 'starting';
  /** Where the checkpoint is once all that was handed over is written. */
  #position: Position = '';
  #filling = true;
  #underWay = 0;
  #wake: (() => void) | undefined;
  #failure: Error | undefined;
  #isTold = false;
  #closing = false;
  /** Whether it was handed anything at all; without that its end is no loss. */
  #begun = false;

  /** @param worker see {@link threadFor} */
  constructor(order: FillOrder, telemetry: Telemetry, worker: Worker) {
    this.#order = order;
    this.#worker = worker;
    let cause: unknown;
    this.#worker.on('error', (error) => {
      cause = error;
      telemetry.log.warn('the thread that fills a view has failed', { error: error.message });
    });
    let isReady: (is: boolean) => void;
    this.#ready = new Promise((resolve) => (isReady = resolve));
    this.#worker.on('message', (message: FromFilling) => {
      if (message.kind !== 'ready') {
        this.#settle(message);
        return;
      }
      this.#state = 'ready';
      telemetry.log.debug('a view is filled by a thread of its own', { view: order.shape.name });
      isReady(true);
    });
    this.#gone = new Promise((resolve) => {
      this.#worker.on('exit', () => {
        this.#end(ended(cause));
        isReady(false);
        resolve();
      });
    });
  }

  /** Whether it may begin. */
  get isReady(): boolean {
    return this.#state === 'ready';
  }

  /** Resolves once it may begin; with false when the thread has ended before. */
  started(): Promise<boolean> {
    return this.#ready;
  }

  /** Goes on with the file, which nobody else must have open for writing. Once, before anything else. */
  async begin(remembered: readonly (readonly [string, KnownRow])[]): Promise<void> {
    this.#begun = true;
    this.#position = await this.#ask<'begin'>({ kind: 'begin', remembered });
  }

  async checkpoint(): Promise<Position> {
    this.#position = await this.#ask<'checkpoint'>({ kind: 'checkpoint' });
    return this.#position;
  }

  load(keys: readonly string[]): Promise<readonly KeptRow[]> {
    return this.#ask<'load'>({ kind: 'load', keys });
  }

  async write(batch: RowBatch): Promise<void> {
    this.#requireWhole();
    // Told at once, as it would be where the batch is written at once; such a batch leaves those before it in peace.
    if (batch.from !== this.#position) {
      throw fenced(`its checkpoint is "${this.#position}", not "${batch.from}"`);
    }
    const packed = packBatch(batch, this.#order.columns);
    const memory = [packed.numbers.buffer as ArrayBuffer];
    if (!this.#filling) {
      await this.#ask<'write'>({ kind: 'write', batch: packed }, memory);
      this.#position = batch.to;
      return;
    }
    this.#handOver({ kind: 'write', batch: packed }, memory);
    this.#position = batch.to;
    while (this.#underWay > UNDER_WAY) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    this.#requireWhole();
  }

  page(after: string | null, limit: number): Promise<readonly KeptRow[]> {
    return this.#ask<'page'>({ kind: 'page', after, limit });
  }

  count(): Promise<number> {
    return this.#ask<'count'>({ kind: 'count' });
  }

  async finish(): Promise<void> {
    await this.#ask<'finish'>({ kind: 'finish' });
    this.#filling = false;
  }

  /** Lets the thread write what it was handed, commit it and end; resolves once it has gone. */
  async close(): Promise<void> {
    this.#closing = true;
    let failure: Error | undefined;
    if (this.#state !== 'gone') {
      await this.#call({ kind: 'close' }).catch((error: Error) => (failure = error));
      await this.#gone;
    }
    // What has gone wrong first, unless it has been told already.
    if (!this.#isTold) failure = this.#failure ?? failure;
    if (failure !== undefined) throw failure;
  }

  async #ask<K extends keyof FillResults>(
    call: FillCall & { readonly kind: K },
    memory: readonly ArrayBuffer[] = [],
  ): Promise<FillResults[K]> {
    this.#requireWhole();
    try {
      // Answers come in the order of the calls, each with what is of its kind.
      return (await this.#call(call, memory)) as FillResults[K];
    } catch (error) {
      this.#requireWhole();
      throw error;
    }
  }

  #call(call: FillCall, memory: readonly ArrayBuffer[] = []): Promise<FillResult> {
    return new Promise((resolve, reject) => {
      this.#post(call, memory, { resolve, reject });
    });
  }

  /** What comes of it is not waited for: a failure comes out with the next call. */
  #handOver(call: FillCall, memory: readonly ArrayBuffer[]): void {
    const over = (): void => {
      this.#underWay -= 1;
      this.#wake?.();
    };
    this.#underWay += 1;
    const reject = (error: Error): void => {
      this.#failure ??= error;
      over();
    };
    this.#post(call, memory, { resolve: over, reject });
  }

  #post(call: FillCall, memory: readonly ArrayBuffer[], waiting: Waiting): void {
    if (this.#state === 'gone') {
      waiting.reject(ended());
      return;
    }
    this.#waiting.push(waiting);
    this.#worker.postMessage(call, memory);
  }

  #settle(answer: Exclude<FromFilling, { readonly kind: 'ready' }>): void {
    const waiting = this.#waiting.shift();
    if (answer.kind === 'done') waiting?.resolve(answer.result);
    else waiting?.reject(carried(answer.error));
  }

  /** The thread has gone: nothing more is answered. */
  #end(error: Error): void {
    this.#state = 'gone';
    if ((this.#begun && !this.#closing) || this.#waiting.length > 0) this.#failure ??= error;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  /** @throws what a batch that was handed over has failed with, or that the thread has died */
  #requireWhole(): void {
    if (this.#failure === undefined) return;
    this.#isTold = true;
    throw this.#failure;
  }
}

function ended(cause?: unknown): ReadModelError {
  return new ReadModelError('UNAVAILABLE', 'the thread that fills a view has ended', cause);
}

/** A thread that is to fill a generation. */
export function threadFor(order: FillOrder): Worker {
  return startThread('./fill-thread', import.meta.url, order, HEAP);
}
