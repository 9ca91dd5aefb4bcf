import type { Clock } from '../../domain/clock.ts';
import type { JsonObject } from '../../domain/json.ts';
import {
  ReadModelError,
  type Filter,
  type KeptDocument,
  type Projection,
  type ReadModel,
} from '../../projections/read-model.ts';

/** Documents at a time: few, as each is copied on the event loop. */
const PAGE = 100;

/** Most pages read in one pass: each document is parsed, and with more this is most of what an idle service does. */
const MOST_PAGES = 20;

/** Milliseconds after a page. */
const REST = 20;

/** Goes through a view, or the part of it that passes the filters, a few pages with each pass, again and again. */
export class ViewPages<D extends JsonObject> {
  private readonly readModel: ReadModel;
  private readonly clock: Clock;
  private readonly projection: Projection<D>;
  private readonly filters: readonly Filter[];
  private after: string | null = null;

  constructor(options: {
    readonly readModel: ReadModel;
    readonly clock: Clock;
    readonly projection: Projection<D>;
    readonly filters: readonly Filter[];
  }) {
    this.readModel = options.readModel;
    this.clock = options.clock;
    this.projection = options.projection;
    this.filters = options.filters;
  }

  /**
   * The next pages.
   * @returns whether the end was reached: the next time begins at the beginning
   */
  async goOn(
    signal: AbortSignal,
    take: (page: readonly KeptDocument<D>[]) => void,
  ): Promise<boolean> {
    for (let pages = 0; pages < MOST_PAGES && !signal.aborted; pages += 1) {
      const page = await this.next();
      take(page);
      this.after = page.length < PAGE ? null : (page.at(-1)?.key ?? null);
      if (this.after === null) return true;
      await this.clock.sleep(REST, signal);
    }
    return false;
  }

  private async next(): Promise<readonly KeptDocument<D>[]> {
    const { after, filters } = this;
    const from = after === null ? {} : { after: { values: [], key: after } };
    try {
      return await this.readModel.find(this.projection, {
        filters,
        sort: [],
        limit: PAGE,
        ...from,
      });
    } catch (error) {
      // Not made yet: nothing in it that memory could differ from.
      if (error instanceof ReadModelError && error.code === 'NO_VIEW') return [];
      throw error;
    }
  }
}
