import type { Worker } from 'node:worker_threads';
import type { CompiledQuery } from './query-sql.ts';
import type {
  FromReader,
  ListRequest,
  ReaderSettings,
  ReadReply,
  ReadRequest,
  ToReader,
} from './reader-protocol.ts';
import { startThread } from '../start-thread.ts';

/** How long an idle thread is kept. Milliseconds. */
const IDLE_MS = 10_000;

/** A reader's heap in MiB. Rows leave at once as strings, so the young generation can stay small. */
const HEAP = { maxYoungGenerationSizeMb: 8 } as const;

interface Waiting {
  readonly resolve: (reply: ReadReply) => void;
  readonly reject: (error: Error) => void;
}

/** One thread and its pending requests. */
class Reader {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #batch: ReadRequest[] = [];
  readonly #onIdle: (reader: Reader) => void;
  /** Starting takes a tenth of a second. */
  hasStarted = false;
  /** Ends it once idle. */
  idleTimer: NodeJS.Timeout | undefined;
  /** Settles once the thread has ended. */
  readonly exited: Promise<void>;

  /** @param onIdle called when it has answered everything */
  constructor(
    settings: ReaderSettings,
    onGone: (reader: Reader) => void,
    onIdle: (reader: Reader) => void,
  ) {
    this.#onIdle = onIdle;
    this.#worker = startThread('./reader-thread', import.meta.url, settings, HEAP);
    let cause: unknown;
    this.#worker.on('message', (replies: FromReader) => this.#settle(replies));
    this.#worker.on('error', (error) => (cause = error));
    this.exited = new Promise((resolve) => {
      this.#worker.on('exit', () => {
        const error = new Error('a reader thread of the read model has ended', { cause });
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
    // Requests of one turn travel together.
    if (this.#batch.length === 0) queueMicrotask(() => this.#flush());
    this.#batch.push(request);
    return new Promise((resolve, reject) => this.#waiting.set(request.id, { resolve, reject }));
  }

  send(message: ToReader): void {
    this.#flush();
    this.#worker.postMessage(message);
  }

  async end(): Promise<void> {
    this.#worker.ref();
    this.send({ kind: 'end' });
    await this.exited;
  }

  #flush(): void {
    if (this.#batch.length === 0) return;
    const requests = this.#batch;
    this.#batch = [];
    this.#worker.postMessage({ kind: 'read', requests } satisfies ToReader);
  }

  #settle(replies: FromReader): void {
    this.hasStarted = true;
    for (const reply of replies) {
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      waiting?.resolve(reply);
    }
    if (this.#waiting.size > 0) return;
    this.#worker.unref();
    this.#onIdle(this);
  }
}

/** A few threads that run queries. One starts when all others are busy, and ends after being idle; one always stays. */
export class ReaderPool {
  readonly #size: number;
  readonly #idle: number;
  readonly #settings: ReaderSettings;
  readonly #readers = new Set<Reader>();
  /** Threads that are ending. */
  readonly #ending = new Set<Promise<void>>();
  #requests = 0;
  #closed = false;

  /**
   * @param size most threads, at least one
   * @param options.idle milliseconds after which an idle thread ends; default: 10,000
   * @param options.immutable whether no file may be created beside the views; default: false
   */
  constructor(
    size: number,
    {
      idle = IDLE_MS,
      immutable = false,
    }: { readonly idle?: number } & Partial<ReaderSettings> = {},
  ) {
    this.#size = size;
    this.#idle = idle;
    this.#settings = { immutable };
  }

  /** Number of threads, without those that are ending. */
  get threads(): number {
    return this.#readers.size;
  }

  /** Runs a query on the least busy thread. Rejects when that thread dies. */
  query(
    view: number,
    file: string,
    query: CompiledQuery,
    limit?: number,
    list?: ListRequest,
  ): Promise<ReadReply> {
    this.#requests += 1;
    const reader = this.#leastBusy();
    clearTimeout(reader.idleTimer);
    return reader.ask({ id: this.#requests, view, file, query, limit, list });
  }

  /** Closes all connections to a view, after earlier requests. */
  forget(view: number): void {
    for (const reader of this.#readers) reader.send({ kind: 'forget', view });
  }

  /** Ends the threads after their pending requests. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { idleTimer } of this.#readers) clearTimeout(idleTimer);
    const ending = Array.from(this.#readers, (reader) => reader.end());
    await Promise.all([...this.#ending, ...ending]);
  }

  #endLater(reader: Reader): void {
    if (this.#closed) return;
    clearTimeout(reader.idleTimer);
    reader.idleTimer = setTimeout(() => {
      if (this.#readers.size <= 1 || reader.load > 0 || !this.#readers.delete(reader)) return;
      const exited = reader.end();
      this.#ending.add(exited);
      void exited.then(() => this.#ending.delete(exited));
    }, this.#idle).unref();
  }

  #leastBusy(): Reader {
    let best: Reader | undefined;
    let starting = false;
    for (const reader of this.#readers) {
      if (best === undefined || reader.load < best.load) best = reader;
      starting ||= !reader.hasStarted;
    }
    // Starting takes longer than most queries, so requests wait for a thread that is starting.
    const enough = starting || this.#readers.size >= this.#size;
    if (best !== undefined && (best.load === 0 || enough)) return best;
    const started = new Reader(
      this.#settings,
      (exited) => {
        this.#readers.delete(exited);
        clearTimeout(exited.idleTimer);
      },
      (idle) => this.#endLater(idle),
    );
    this.#readers.add(started);
    return started;
  }
}
