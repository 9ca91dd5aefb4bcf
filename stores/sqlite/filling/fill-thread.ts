import { parentPort, workerData } from 'node:worker_threads';
import { fileNumber } from '../database-file.ts';
import { giveWay } from '../give-way.ts';
import { openGenerationDatabase } from '../read-model/generation-database.ts';
import { fenced, RowsHere } from '../read-model/rows-here.ts';
import type { KnownRow } from '../read-model/view-rows.ts';
import { carry, type CarriedError } from './carried-error.ts';
import { unpackBatch } from './packed-batch.ts';
import type { FillCall, FillOrder, FillResult, FromFilling } from './protocol.ts';

/** The entry of a thread that writes a generation while another folds what comes next. */
class FillThread {
  readonly #order: FillOrder;
  #rows: RowsHere | undefined;
  /** What the beginning or a write has failed with: what was handed over behind it must not go in. */
  #failure: CarriedError | undefined;

  constructor(order: FillOrder) {
    this.#order = order;
  }

  answer(call: FillCall): FromFilling {
    if (this.#failure !== undefined && call.kind !== 'close') {
      return { kind: 'failed', error: this.#failure };
    }
    try {
      return { kind: 'done', result: this.#do(call) };
    } catch (cause) {
      const error = carry(cause);
      if (call.kind === 'write' || call.kind === 'begin') this.#failure = error;
      return { kind: 'failed', error };
    }
  }

  #do(call: FillCall): FillResult {
    if (call.kind === 'begin') return this.#begin(call.remembered);
    if (call.kind === 'close') {
      this.#rows?.close();
      return undefined;
    }
    if (this.#rows === undefined) throw new Error('the thread that fills a view has not begun');
    switch (call.kind) {
      case 'write':
        this.#rows.write(unpackBatch(call.batch, this.#order.columns));
        return undefined;
      case 'checkpoint':
        return this.#rows.checkpoint();
      case 'load':
        return this.#rows.load(call.keys);
      case 'page':
        return this.#rows.page(call.after, call.limit);
      case 'count':
        return this.#rows.count();
      case 'finish':
        this.#rows.finish();
        return undefined;
    }
  }

  #begin(remembered: readonly (readonly [string, KnownRow])[]): string {
    const { shape, columns, file, fence } = this.#order;
    if (fileNumber(file) !== this.#order.fileNumber) throw fenced('its file was thrown away');
    const database = openGenerationDatabase(file, { bulk: true });
    this.#rows = new RowsHere({ shape, columns, file, database, fence, bulk: true });
    const checkpoint = this.#rows.checkpoint();
    this.#rows.remember(remembered);
    return checkpoint;
  }
}

function serve(order: FillOrder): void {
  const thread = new FillThread(order);
  const tell = (message: FromFilling): void => parentPort?.postMessage(message);
  parentPort?.on('message', (call: FillCall) => {
    tell(thread.answer(call));
    if (call.kind === 'close') parentPort?.close();
  });
  tell({ kind: 'ready' });
}

giveWay();
serve(workerData as FillOrder);
