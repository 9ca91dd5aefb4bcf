import type { JsonObject } from '../../domain/json.ts';
import {
  ReadModelError,
  type Filter,
  type ViewDocument,
  type Projection,
} from '../../projections/read-model.ts';
import type { AuditParts } from './audit.ts';

/** Documents per page. There are few because each document is copied on the event loop. */
const PAGE_SIZE = 100;

/** Pages that one pass reads. With more pages, an idle service would spend most of its time on parsing them. */
const MAX_PAGES = 20;

const REST_MS = 20;

/** Reads the documents of a view that pass the filters, some pages in each pass. After the end, it starts over. */
export class ViewCursor<D extends JsonObject> {
  readonly #parts: Pick<AuditParts, 'readModel' | 'clock'>;
  readonly #projection: Projection<D>;
  readonly #filters: readonly Filter[];
  #after: string | null = null;

  constructor(
    parts: Pick<AuditParts, 'readModel' | 'clock'>,
    projection: Projection<D>,
    filters: readonly Filter[],
  ) {
    this.#parts = parts;
    this.#projection = projection;
    this.#filters = filters;
  }

  /** Reads the next pages. @returns whether the end was reached; the next call then starts over */
  async advance(
    signal: AbortSignal,
    take: (page: readonly ViewDocument<D>[]) => void,
  ): Promise<boolean> {
    for (let pages = 0; pages < MAX_PAGES && !signal.aborted; pages += 1) {
      const page = await this.#nextPage();
      take(page);
      this.#after = page.length < PAGE_SIZE ? null : (page.at(-1)?.key ?? null);
      if (this.#after === null) return true;
      await this.#parts.clock.sleep(REST_MS, signal);
    }
    return false;
  }

  async #nextPage(): Promise<readonly ViewDocument<D>[]> {
    const key = this.#after;
    const query = { filters: this.#filters, sort: [], limit: PAGE_SIZE };
    try {
      return await this.#parts.readModel.find(
        this.#projection,
        key === null ? query : { ...query, after: { values: [], key } },
      );
    } catch (error) {
      // The view was never built.
      if (error instanceof ReadModelError && error.code === 'NO_VIEW') return [];
      throw error;
    }
  }
}
