import type { Landmark, Position } from '../../../domain/event-store.ts';
import type { JsonObject } from '../../../domain/json.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import {
  ReadModelError,
  type FieldValues,
  type Filter,
  type ViewDocument,
  type Listed,
  type ListQuery,
  type Projection,
  type Query,
  type ReadModel,
  type ValuesQuery,
  type ViewWriter,
  type WriterOptions,
} from '../../../projections/read-model.ts';
import { faultOf, type DatabaseFault } from '../database.ts';
import { deleteDatabase, fileNumber } from '../database-file.ts';
import { unavailable } from './unavailable.ts';
import { fieldValuesIn } from './field-values.ts';
import { OtherShares } from './filling/other-shares.ts';
import { LiveView } from './live-view.ts';
import {
  compileCount,
  compileFind,
  compileValues,
  isPointQuery,
  type CompiledQuery,
} from './query-sql.ts';
import type { ReaderPool } from './reader-pool.ts';
import type { ListRequest, ReadReply } from './reader-protocol.ts';
import { openGeneration } from './view-generation.ts';
import type { ViewFiles } from './view-files.ts';
import { SqliteViewWriter } from './view-writer.ts';

/** How long a lookup of the live generation is trusted, in milliseconds. */
const LIVE_CACHE_MS = 200;

interface CachedView {
  readonly view: LiveView;
  checkedAt: number;
}

/** The embedded read model. Queries run on threads; single documents and checkpoints are read on the calling one. */
export class SqliteReadModel implements ReadModel {
  readonly #files: ViewFiles;
  readonly #pool: ReaderPool;
  /** Lists have separate threads, because a page of large documents occupies a thread for half a second. */
  readonly #lists: ReaderPool;
  readonly #telemetry: Telemetry;
  readonly #views = new Map<string, CachedView>();

  readonly #writers = new Set<ViewWriter>();
  #closing: Promise<void> | undefined;

  constructor(parts: {
    readonly files: ViewFiles;
    readonly pool: ReaderPool;
    readonly lists: ReaderPool;
    readonly telemetry: Telemetry;
  }) {
    this.#files = parts.files;
    this.#pool = parts.pool;
    this.#lists = parts.lists;
    this.#telemetry = parts.telemetry;
  }

  async get<D extends JsonObject>(
    projection: Projection<D>,
    key: string,
  ): Promise<ViewDocument<D> | null> {
    return this.#onLive(projection, (view) => view.get<D>(key));
  }

  async find<D extends JsonObject>(
    projection: Projection<D>,
    query: Query,
  ): Promise<readonly ViewDocument<D>[]> {
    const limit = Math.max(0, Math.trunc(query.limit));
    const compiled = compileFind(projection, query);
    const [point] = isPointQuery(projection, query) ? compiled.plans.rare : [];
    if (point !== undefined) return this.#onLive(projection, (view) => view.find<D>(point, limit));
    const reply = await this.#query(projection, compiled, limit);
    const texts = reply.kind === 'rows' ? reply.texts : [];
    const found: ViewDocument<D>[] = [];
    for (let i = 0; i + 2 < texts.length; i += 3) {
      const [key = '', position = '', text = ''] = [texts[i], texts[i + 1], texts[i + 2]];
      found.push({ key, position, document: JSON.parse(text) as D });
    }
    return found;
  }

  async count<D extends JsonObject>(
    projection: Projection<D>,
    filters: readonly Filter[],
  ): Promise<number> {
    const reply = await this.#query(projection, compileCount(projection, filters), undefined);
    return reply.kind === 'count' ? reply.count : 0;
  }

  async values(projection: Projection, query: ValuesQuery): Promise<readonly FieldValues[]> {
    const reply = await this.#query(projection, compileValues(projection, query), 1);
    return fieldValuesIn(projection, query, reply.kind === 'rows' ? reply.texts[2] : undefined);
  }

  async list(projection: Projection, query: ListQuery): Promise<Listed> {
    const limit = Math.max(0, Math.trunc(query.limit));
    const { counted = query.filters, mostBytes = Infinity, cut } = query;
    const reply = await this.#query(projection, compileFind(projection, query), limit, {
      counted: counted === null ? null : compileCount(projection, counted),
      mostBytes,
      cut,
    });
    if (reply.kind !== 'list') throw new Error(`a list was answered with ${reply.kind}`);
    return reply.listed;
  }

  async checkpoint(projection: Projection): Promise<Position> {
    return this.#onLiveOr('', projection, (view) => view.checkpoint());
  }

  async landmark(projection: Projection): Promise<Landmark | null> {
    return this.#onLiveOr(null, projection, (view) => view.landmark());
  }

  version(projection: Projection): string {
    return this.#onLive(projection, (view) => view.version());
  }

  async openWriter(projection: Projection, options: WriterOptions): Promise<ViewWriter> {
    return this.#onFiles(projection, () => {
      const { generation, fence } = options;
      const opened = openGeneration(this.#files, this.#telemetry, projection, options);
      const writer = new SqliteViewWriter({
        ...opened,
        projection,
        fence,
        otherShares: new OtherShares(this.#files, projection, options),
        errorOf: (error) => {
          if (faultOf(error) !== 'corrupt') return unavailable('view', opened.file, error);
          this.#condemn(projection, generation, opened.fileNumber, error, options.share?.index);
          return new ReadModelError(
            'FENCED',
            `the view ${opened.file} was damaged; reopen it`,
            error,
          );
        },
        closed: (closed) => this.#writers.delete(closed),
      });
      // An older release leaves the tallies to the end of a fill, but it fills no shares.
      if (opened.bulk && opened.existed && opened.share === null) {
        try {
          writer.recount();
        } catch (error) {
          if (opened.database.isOpen) opened.database.close();
          throw error;
        }
      }
      this.#writers.add(writer);
      return writer;
    });
  }

  async liveGeneration(projection: Projection): Promise<number | null> {
    return this.#onFiles(projection, () => this.#files.live(projection));
  }

  async switchTo(projection: Projection, generation: number): Promise<void> {
    this.#onFiles(projection, () => {
      if (!this.#files.switchTo(projection, generation)) {
        const name = `${projection.name} (schema ${String(projection.schema)})`;
        throw new ReadModelError('NO_VIEW', `${name} has no generation ${String(generation)}`);
      }
      const cached = this.#views.get(nameOf(projection));
      if (cached !== undefined) cached.checkedAt = -Infinity;
    });
  }

  async withdraw(projection: Projection): Promise<void> {
    this.#onFiles(projection, () => {
      const generation = this.#files.live(projection);
      if (generation === null) return;
      this.#files.exclusively(() => this.#files.unsetLive(projection, generation));
      this.#forget(projection);
    });
  }

  async schemas(projection: Projection): Promise<readonly number[]> {
    return this.#onFiles(projection, () => this.#files.schemas(projection));
  }

  async generations(projection: Projection): Promise<readonly number[]> {
    return this.#onFiles(projection, () => this.#files.generations(projection));
  }

  async discard(projection: Projection, generation: number): Promise<void> {
    this.#onFiles(projection, () =>
      this.#files.exclusively(() => {
        if (this.#files.live(projection) === generation) {
          throw new RangeError(
            `generation ${String(generation)} of ${projection.name} is live and cannot be discarded`,
          );
        }
        this.#files.delete(projection, generation);
      }),
    );
  }

  async ping(): Promise<void> {
    this.#requireOpen();
    this.#files.ping();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // One failed close must not keep the rest open.
    const closed = await Promise.allSettled([...this.#writers].map((writer) => writer.close()));
    await Promise.all([this.#pool.close(), this.#lists.close()]);
    for (const { view } of this.#views.values()) view.close();
    this.#views.clear();
    this.#files.close();
    for (const each of closed) if (each.status === 'rejected') throw each.reason;
  }

  /** Reads on this thread. Tries again when the file was replaced in the meantime. */
  #onLive<T>(projection: Projection, action: (view: LiveView) => T): T {
    for (let attempt = 0; ; attempt += 1) {
      const view = this.#live(projection);
      try {
        return action(view);
      } catch (error) {
        this.#failed(projection, view, faultOf(error), error, attempt);
      }
    }
  }

  #onLiveOr<T>(fallback: T, projection: Projection, action: (view: LiveView) => T): T {
    try {
      return this.#onLive(projection, action);
    } catch (error) {
      if (error instanceof ReadModelError && error.code === 'NO_VIEW') return fallback;
      throw error;
    }
  }

  async #query(
    projection: Projection,
    query: CompiledQuery,
    limit: number | undefined,
    list?: ListRequest,
  ): Promise<ReadReply> {
    for (let attempt = 0; ; attempt += 1) {
      const view = this.#live(projection);
      const pool = list === undefined ? this.#pool : this.#lists;
      const reply = await pool
        .query(view.number, view.file, query, limit, list)
        .catch((error: unknown) => {
          throw new ReadModelError('UNAVAILABLE', `the view ${view.file} cannot be read`, error);
        });
      if (reply.kind !== 'failed') return reply;
      this.#failed(projection, view, reply.fault, new Error(reply.message), attempt);
    }
  }

  /** Returns when another attempt is worthwhile; throws otherwise. */
  #failed(
    projection: Projection,
    view: LiveView,
    fault: DatabaseFault | undefined,
    error: unknown,
    attempt: number,
  ): void {
    if (fault === 'corrupt') {
      this.#condemn(projection, view.generation, view.fileNumber, error);
      throw noView(projection, error);
    }
    if (attempt === 0 && (fault === 'cannot-open' || !view.isCurrent())) {
      this.#forget(projection);
      return;
    }
    if (fault === undefined) throw error;
    const detail = error instanceof Error ? error.message : String(error);
    const message = `the view ${view.file} cannot be read: ${detail}`;
    throw new ReadModelError('UNAVAILABLE', message, error);
  }

  /** The live view. Checks the register at most every {@link LIVE_CACHE_MS} per projection. */
  #live(projection: Projection): LiveView {
    this.#requireOpen();
    const cached = this.#views.get(nameOf(projection));
    const now = performance.now();
    if (cached !== undefined && now - cached.checkedAt < LIVE_CACHE_MS) return cached.view;
    return this.#onFiles(projection, () => {
      const generation = this.#files.live(projection);
      if (
        cached !== undefined &&
        cached.view.generation === generation &&
        cached.view.isCurrent()
      ) {
        cached.checkedAt = now;
        return cached.view;
      }
      this.#forget(projection);
      if (generation === null) throw noView(projection);
      const view = this.#openView(projection, generation);
      this.#views.set(nameOf(projection), { view, checkedAt: now });
      return view;
    });
  }

  #openView(projection: Projection, generation: number): LiveView {
    const file = this.#files.pathOf(projection, generation);
    const number = fileNumber(file);
    try {
      return new LiveView(file, generation, this.#files.readOnly);
    } catch (error) {
      const fault = faultOf(error);
      if (fault === 'corrupt') this.#condemn(projection, generation, number, error);
      // Discarded between the lookup and the opening.
      const gone = fault === 'cannot-open' && fileNumber(file) === undefined;
      if (fault === 'corrupt' || gone) throw noView(projection, error);
      throw unavailable('view', file, error);
    }
  }

  #forget(projection: Projection): void {
    const cached = this.#views.get(nameOf(projection));
    if (cached === undefined) return;
    this.#views.delete(nameOf(projection));
    for (const pool of [this.#pool, this.#lists]) pool.forget(cached.view.number);
    cached.view.close();
  }

  /**
   * Deletes a damaged file and its registration, so that the view is rebuilt. Its writer finds out later.
   * @throws ReadModelError `UNAVAILABLE` where the register cannot be written now, and in a read-only model
   */
  #condemn(
    projection: Projection,
    generation: number,
    number: number | undefined,
    error: unknown,
    share = 0,
  ): void {
    const file = this.#files.pathOf(projection, generation, share);
    if (this.#files.readOnly) throw unavailable('view', file, error);
    this.#telemetry.log.error(`the view ${file} is damaged; deleted for a rebuild`, {
      projection: projection.name,
      generation,
      error: error instanceof Error ? error.message : String(error),
    });
    this.#forget(projection);
    try {
      this.#files.exclusively(() => {
        if (fileNumber(file) !== number) return;
        if (share > 0) deleteDatabase(file);
        else {
          this.#files.unsetLive(projection, generation);
          this.#files.delete(projection, generation);
        }
      });
    } catch (fault) {
      throw unavailable('files of the view', projection.name, fault);
    }
  }

  #onFiles<T>(projection: Projection, action: () => T): T {
    this.#requireOpen();
    try {
      return action();
    } catch (error) {
      throw unavailable('files of the view', projection.name, error);
    }
  }

  #requireOpen(): void {
    if (this.#closing !== undefined) {
      throw new ReadModelError('UNAVAILABLE', 'the read model is closed');
    }
  }
}

function nameOf(projection: Projection): string {
  return `${projection.name}-s${String(projection.schema)}`;
}

function noView(projection: Projection, cause?: unknown): ReadModelError {
  const name = `${projection.name} (schema ${String(projection.schema)})`;
  return new ReadModelError('NO_VIEW', `${name} has no live view yet`, cause);
}
