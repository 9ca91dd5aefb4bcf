import type { Worker } from 'node:worker_threads';
import type { CompiledQuery } from './query-sql.ts';
import type { ReadReply, ReadRequest, ToReader } from './reader-protocol.ts';
import { startThread } from './start-thread.ts';

interface Waiting {
  readonly resolve: (reply: ReadReply) => void;
  readonly reject: (error: Error) => void;
}

/** One thread, and what it has been asked. */
class Reader {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #batch: ReadRequest[] = [];
  /** Settles once the thread has gone, for whatever reason. */
  readonly gone: Promise<void>;

  constructor(onGone: (reader: Reader) => void) {
    this.#worker = startThread('./reader-thread', import.meta.url);
    let cause: unknown;
    this.#worker.on('message', (replies: readonly ReadReply[]) => this.#settle(replies));
    this.#worker.on('error', (error) => (cause = error));
    this.gone = new Promise((resolve) => {
      this.#worker.on('exit', () => {
        const error = new Error('the thread that reads the views has ended', { cause });
        for (const { reject } of this.#waiting.values()) reject(error);
        this.#waiting.clear();
        onGone(this);
        resolve();
      });
    });
    this.#worker.unref();
  }

  get load(): number {
    return this.#waiting.size;
  }

  ask(request: ReadRequest): Promise<ReadReply> {
    // A thread keeps the process alive only while somebody waits for it.
    if (this.#waiting.size === 0) this.#worker.ref();
    // What is asked within one turn goes over together.
    if (this.#batch.length === 0) queueMicrotask(() => this.#flush());
    this.#batch.push(request);
    return new Promise((resolve, reject) => this.#waiting.set(request.id, { resolve, reject }));
  }

  tell(message: ToReader): void {
    this.#flush();
    this.#worker.postMessage(message);
  }

  async end(): Promise<void> {
    this.#worker.ref();
    this.tell({ kind: 'end' });
    await this.gone;
  }

  #flush(): void {
    if (this.#batch.length === 0) return;
    const requests = this.#batch;
    this.#batch = [];
    this.#worker.postMessage({ kind: 'read', requests } satisfies ToReader);
  }

  #settle(replies: readonly ReadReply[]): void {
    for (const reply of replies) {
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      waiting?.resolve(reply);
    }
    if (this.#waiting.size === 0) this.#worker.unref();
  }
}

/** A few threads that run queries. Each is started when the ones before it are busy. */
export class ReaderPool {
  readonly #size: number;
  readonly #readers = new Set<Reader>();
  #requests = 0;

  /** @param size how many threads at most, at least one */
  constructor(size: number) {
    this.#size = size;
  }

  /** Runs a query on the thread that has least to do. Rejects when that thread dies. */
  ask(view: number, file: string, query: CompiledQuery, limit?: number): Promise<ReadReply> {
    this.#requests += 1;
    return this.#idlest().ask({ id: this.#requests, view, file, query, limit });
  }

  /** Lets all threads close their connection of a view, after what was asked of it before. */
  forget(view: number): void {
    for (const reader of this.#readers) reader.tell({ kind: 'forget', view });
  }

  /** Lets the threads answer what they were asked, and end. */
  async close(): Promise<void> {
    await Promise.all([...this.#readers].map((reader) => reader.end()));
  }

  #idlest(): Reader {
    let best: Reader | undefined;
    for (const reader of this.#readers) {
      if (best === undefined || reader.load < best.load) best = reader;
    }
    if (best !== undefined && (best.load === 0 || this.#readers.size >= this.#size)) return best;
    const started = new Reader((gone) => this.#readers.delete(gone));
    this.#readers.add(started);
    return started;
  }
}
