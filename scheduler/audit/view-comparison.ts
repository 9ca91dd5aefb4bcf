import type { JsonObject } from '../../domain/json.ts';
import type { Filter, Projection } from '../../projections/read-model.ts';
import type { AuditParts } from './audit.ts';
import type { Findings } from './findings.ts';
import { ViewCursor } from './view-cursor.ts';

/** Differences are looked at again after this long: an event may have been on its way. Milliseconds. */
const SETTLE_TIME = 2000;

const MAX_DIFFERENCES = 500;

const READS_BEFORE_REST = 10;
const ENTRIES_BEFORE_REST = 2000;
const REST_MS = 10;

/** The part of a view that is held in memory, and how the two are compared. */
export interface ComparedMemory<D> {
  /** Keys of all entries in memory. */
  keys(): Iterable<string>;
  /** Whether memory lacks a document of the view or is behind it. */
  differs(key: string, document: D): boolean;
  /**
   * Reads the log, and repairs the entry.
   * @param document null: the entry is in memory, but not in the view
   * @returns whether the log was read
   */
  inspect(key: string, document: D | null, findings: Findings): Promise<boolean>;
}

/**
 * Compares a view with memory, in both directions, page by page: memory that follows the log would not notice a missed
 * event. Differences get time to settle and are then checked against the log.
 */
export class ViewComparison<D extends JsonObject> {
  readonly #clock: AuditParts['clock'];
  readonly #cursor: ViewCursor<D>;
  readonly #memory: ComparedMemory<D>;
  /** Keys of the view, read since its beginning. At its end, entries in memory without such a key are inspected. */
  #seen = new Set<string>();

  constructor(
    parts: Pick<AuditParts, 'readModel' | 'clock'>,
    projection: Projection<D>,
    filters: readonly Filter[],
    memory: ComparedMemory<D>,
  ) {
    this.#clock = parts.clock;
    this.#cursor = new ViewCursor(parts, projection, filters);
    this.#memory = memory;
  }

  /** Compares the next pages. @throws EventStoreError, ReadModelError */
  async run(findings: Findings, signal: AbortSignal): Promise<void> {
    const differences = await this.#differences(signal);
    if (differences.size === 0) return;
    await this.#clock.sleep(SETTLE_TIME, signal);
    let reads = 0;
    for (const [key, document] of differences) {
      if (signal.aborted) return;
      if (!(await this.#memory.inspect(key, document, findings))) continue;
      reads += 1;
      if (reads % READS_BEFORE_REST === 0) await this.#clock.sleep(REST_MS, signal);
    }
  }

  async #differences(signal: AbortSignal): Promise<ReadonlyMap<string, D | null>> {
    const differences = new Map<string, D | null>();
    const ended = await this.#cursor.advance(signal, (page) => {
      for (const { key, document } of page) {
        this.#seen.add(key);
        if (differences.size < MAX_DIFFERENCES && this.#memory.differs(key, document)) {
          differences.set(key, document);
        }
      }
    });
    if (!ended) return differences;
    const seen = this.#seen;
    this.#seen = new Set();
    let compared = 0;
    for (const key of this.#memory.keys()) {
      if (differences.size >= MAX_DIFFERENCES) break;
      if (!seen.has(key)) differences.set(key, null);
      compared += 1;
      if (compared % ENTRIES_BEFORE_REST === 0) await this.#clock.sleep(REST_MS, signal);
    }
    return differences;
  }
}
