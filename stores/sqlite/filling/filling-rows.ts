import type { Worker } from 'node:worker_threads';
import type { Position } from '../../../domain/event-store.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { RowsHere, type OpenRows } from '../read-model/rows-here.ts';
import type { KeptRow, RowBatch, ViewRows } from '../read-model/view-rows.ts';
import { fileNumber } from '../database-file.ts';
import type { FillOrder } from './protocol.ts';
import { RowsInThread, threadFor } from './rows-in-thread.ts';

/**
 * Documents that are written on the calling thread before one of its own is worth its start: most views, and those of a
 * service that begins, have fewer.
 */
export const DOCUMENTS_HERE = 5_000;

/**
 * The rows of a generation that is being filled: the first of them here, and from there on in a thread, so that writing,
 * committing and the making of the indexes go on beside the folding. Where that thread does not start, all of them here.
 */
export class FillingRows implements ViewRows {
  readonly #open: OpenRows;
  readonly #telemetry: Telemetry;
  readonly #documentsHere: number;
  readonly #startThread: (order: FillOrder) => Worker;
  #documents = 0;
  /** Where the rows go now; one of the next two. */
  #rows: ViewRows;
  #here: RowsHere | null;
  /** Started; it has the file once there is nobody `here`. */
  #thread: RowsInThread | null = null;

  /**
   * @param documentsHere see {@link DOCUMENTS_HERE}
   * @param startThread default: as the service does
   */
  constructor(
    open: OpenRows,
    documentsHere: number,
    telemetry: Telemetry,
    startThread: (order: FillOrder) => Worker = threadFor,
  ) {
    this.#startThread = startThread;
    this.#open = open;
    this.#documentsHere = documentsHere;
    this.#telemetry = telemetry;
    this.#here = this.#rows = new RowsHere(open);
  }

  checkpoint(): Position | Promise<Position> {
    return this.#rows.checkpoint();
  }

  load(keys: readonly string[]): readonly KeptRow[] | Promise<readonly KeptRow[]> {
    return this.#rows.load(keys);
  }

  async write(batch: RowBatch): Promise<void> {
    if (this.#here !== null && this.#documents >= this.#documentsHere) {
      const thread = this.#start();
      if (this.#documentsHere === 0) await thread.started();
      if (thread.isReady) await this.#toThread(this.#here, thread);
    }
    this.#documents += batch.rows.length;
    await this.#rows.write(batch);
  }

  page(after: string | null, limit: number): readonly KeptRow[] | Promise<readonly KeptRow[]> {
    return this.#rows.page(after, limit);
  }

  count(): number | Promise<number> {
    return this.#rows.count();
  }

  finish(): void | Promise<void> {
    return this.#rows.finish();
  }

  async close(): Promise<void> {
    try {
      this.#here?.close();
    } finally {
      await this.#thread?.close();
    }
  }

  #start(): RowsInThread {
    const { shape, columns, file, fence } = this.#open;
    const order = { shape, columns, file, fileNumber: fileNumber(file), fence };
    return (this.#thread ??= new RowsInThread(order, this.#telemetry, this.#startThread(order)));
  }

  /** The thread opens the file once nobody here has it open for writing any more. */
  async #toThread(here: RowsHere, thread: RowsInThread): Promise<void> {
    const remembered = here.remembered();
    here.close();
    this.#here = null;
    this.#rows = thread;
    await thread.begin(remembered);
  }
}
