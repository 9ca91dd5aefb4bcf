import type { Clock } from '../../domain/clock.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ViewPages } from './view-pages.ts';

/** What differs is looked at again after this long: it may have been on its way. Milliseconds. */
const ON_ITS_WAY = 2000;

/** Most that one pass looks into. */
const MOST_SUSPECTS = 500;

/** Reads of streams, then a rest. Milliseconds. */
const READS_AT_ONCE = 10;
const REST = 10;

/** Entries in memory looked up in one go. */
const COMPARED_AT_ONCE = 2000;

/** What is held in memory of a view, and how the two are compared. */
export interface Remembered<D> {
  /** Keys of all that is in memory. */
  keys(): Iterable<string>;
  /** Whether memory lacks a document of the view, or is behind it. */
  differs(key: string, document: D): boolean;
  /**
   * Reads what the log says, and mends.
   * @param document null: it is in memory, and not in the view
   * @returns whether something had to be read
   */
  lookInto(key: string, document: D | null): Promise<boolean>;
}

/**
 * Goes through a view a page at a time and compares it with what is in memory, both ways: whoever follows a log goes on
 * by what comes, and would not notice what did not. What differs is given time, and then looked into by the log.
 */
export class MemoryAgrees<D extends JsonObject> {
  private readonly pages: ViewPages<D>;
  private readonly clock: Clock;
  /** Keys of the view since its beginning; what of the memory is not among them at the end is looked into. */
  private seen = new Set<string>();

  constructor(pages: ViewPages<D>, clock: Clock) {
    this.pages = pages;
    this.clock = clock;
  }

  /** One pass, over the next pages. @throws EventStoreError, ReadModelError what the log and the views throw */
  async look(memory: Remembered<D>, signal: AbortSignal): Promise<void> {
    const suspects = await this.suspects(memory, signal);
    if (suspects.size === 0) return;
    await this.clock.sleep(ON_ITS_WAY, signal);
    let reads = 0;
    for (const [key, document] of suspects) {
      if (signal.aborted) return;
      if (!(await memory.lookInto(key, document))) continue;
      reads += 1;
      if (reads % READS_AT_ONCE === 0) await this.clock.sleep(REST, signal);
    }
  }

  private async suspects(
    memory: Remembered<D>,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, D | null>> {
    const suspects = new Map<string, D | null>();
    const ended = await this.pages.goOn(signal, (page) => {
      for (const { key, document } of page) {
        this.seen.add(key);
        if (suspects.size < MOST_SUSPECTS && memory.differs(key, document)) {
          suspects.set(key, document);
        }
      }
    });
    if (!ended) return suspects;
    const { seen } = this;
    this.seen = new Set();
    let compared = 0;
    for (const key of memory.keys()) {
      if (suspects.size >= MOST_SUSPECTS) break;
      if (!seen.has(key)) suspects.set(key, null);
      compared += 1;
      if (compared % COMPARED_AT_ONCE === 0) await this.clock.sleep(REST, signal);
    }
    return suspects;
  }
}
