import type { Worker } from 'node:worker_threads';
import type { Telemetry } from '../../../../observability/telemetry.ts';
import { startThread } from '../../read-model/start-thread.ts';
import type { AheadOrder, FromAhead, ToAhead } from './ahead-protocol.ts';
import type { PackedPage } from './packed-page.ts';

/** Pages that are read before they are asked for, at most. */
const PAGES_AHEAD = 4;
/** So many at a time are asked for: to wake the thread costs about what folding ten events does. */
const PAGES_ASKED = 2;

/** The heap of the thread: what it reads goes over as soon as it is together. MiB; taken only as it is needed. */
const HEAP = { maxYoungGenerationSizeMb: 16 } as const;

/**
 * Reads a part of the log in a thread of its own, a few pages ahead of who takes them. Until that thread is there, and
 * once it has ended for whatever reason, there are none, and who follows the log reads it by itself.
 */
export class ReadAhead {
  readonly #worker: Worker;
  readonly #gone: Promise<void>;
  readonly #pages: PackedPage[] = [];
  /** Taken, and nothing asked for in their place. */
  #taken = 0;
  #state: 'starting' | 'ready' | 'reading' | 'ended' = 'starting';
  #wake: (() => void) | undefined;

  constructor(order: AheadOrder, telemetry: Telemetry) {
    this.#worker = startThread('./ahead-thread', import.meta.url, order, HEAP);
    this.#worker.on('message', (message: FromAhead) => {
      this.#take(message);
      if (message.kind === 'ready')
        telemetry.log.debug('the log is read ahead', { until: order.until });
    });
    this.#worker.on('error', (error) => {
      // Nothing is lost: who follows goes on by itself, and says what is wrong if that fails as well.
      telemetry.log.warn('reading ahead in the log has failed', { error: error.message });
    });
    this.#gone = new Promise((resolve) => {
      this.#worker.on('exit', () => {
        this.#state = 'ended';
        this.#wake?.();
        resolve();
      });
    });
  }

  /**
   * The next page; undefined where there is none, and the log is to be read without it.
   * @param after where the last page ended that was read, from here or not
   */
  async next(after: number): Promise<PackedPage | undefined> {
    if (this.#state === 'starting') return undefined;
    if (this.#state === 'ready') {
      this.#state = 'reading';
      this.#tell({ kind: 'more', after, pages: PAGES_AHEAD });
    }
    while (this.#pages.length === 0 && this.#state === 'reading') {
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
    const page = this.#pages.shift();
    if (page === undefined) return undefined;
    this.#taken += 1;
    if (this.#taken === PAGES_ASKED) {
      this.#taken = 0;
      this.#tell({ kind: 'more', pages: PAGES_ASKED });
    }
    return page;
  }

  /** Lets the thread end; resolves once it has gone. What it has read is dropped. */
  end(): Promise<void> {
    this.#state = 'ended';
    this.#pages.length = 0;
    this.#tell({ kind: 'end' });
    this.#wake?.();
    return this.#gone;
  }

  #take(message: FromAhead): void {
    if (this.#state === 'ended') return;
    if (message.kind === 'ready') this.#state = 'ready';
    else this.#pages.push(message.page);
    this.#wake?.();
  }

  #tell(message: ToAhead): void {
    this.#worker.postMessage(message);
  }
}
