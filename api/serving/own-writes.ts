import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { ReadModelError, type Projection } from '../../projections/read-model.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { checkPosition, havePassed, requirePassed } from '../positions.ts';

/** How many agents' last commands are remembered. */
const MAX_AGENTS = 100_000;

/** The progress of views. */
export interface ReachedViews {
  /** A position that all of them have passed. */
  readonly position: Position;
  /** Versions looked up since, by the list of views. */
  readonly versions: Map<readonly Projection[], string | null>;
}

/** Lets agents read their own writes: remembers the last command of each through this process. */
export class OwnWrites {
  readonly #dependencies: ApiDependencies;
  readonly #lastPositions = new Map<string, Position>();
  /** The versions that were looked up in this turn of the event loop. */
  readonly #reached = new Map<Projection, ReachedViews>();

  constructor(dependencies: ApiDependencies) {
    this.#dependencies = dependencies;
  }

  /** Remembers a command of an agent. */
  note(agentId: string, position: Position): void {
    const known = this.#lastPositions.get(agentId);
    if (known !== undefined && known >= position) return;
    this.#lastPositions.delete(agentId);
    this.#lastPositions.set(agentId, position);
    if (this.#lastPositions.size <= MAX_AGENTS) return;
    const [oldest] = this.#lastPositions.keys();
    if (oldest !== undefined) this.#lastPositions.delete(oldest);
  }

  /** Position of the agent's last command through this process. */
  of(agentId: string): Position {
    return this.#lastPositions.get(agentId) ?? BEGINNING;
  }

  /**
   * Waits until views have passed `after` and the caller's last command. After two seconds, it continues regardless.
   * @throws HttpError 503 when `after` is not passed in time, 400 when it is no position of this log
   */
  async wait(
    views: readonly Projection[],
    own: Position,
    after: string | undefined,
  ): Promise<void> {
    if (after === undefined) {
      const passing = havePassed(this.#dependencies, views, own);
      if (passing instanceof Promise) await passing;
      return;
    }
    await checkPosition(this.#dependencies.store, 'after', after);
    await requirePassed(this.#dependencies, views, after, own);
  }

  /**
   * The position that all views have passed. Requests in one turn of the event loop share the lookup, which costs as
   * much as reading a document.
   * @param atLeast a position that they are known to have passed
   */
  async reached(views: readonly Projection[], atLeast: Position): Promise<ReachedViews> {
    const [view] = views;
    if (view === undefined || views.length > 1) return this.#lookUp(views);
    const known = this.#reached.get(view);
    if (known !== undefined && known.position >= atLeast) return known;
    const found = await this.#lookUp([view]);
    if (this.#reached.size === 0) setImmediate(() => this.#reached.clear());
    this.#reached.set(view, found);
    return found;
  }

  /** A version that changes whenever one of the views changes; null if the store has none. */
  versionOf(views: readonly Projection[], { versions }: ReachedViews): string | null {
    let version = versions.get(views);
    if (version === undefined) versions.set(views, (version = this.#currentVersion(views)));
    return version;
  }

  #currentVersion(views: readonly Projection[]): string | null {
    const { readModel } = this.#dependencies;
    try {
      const versions = views.map((view) => readModel.version?.(view));
      return versions.includes(undefined) ? null : versions.join(' ');
    } catch (error) {
      // The read of the view reports it.
      if (error instanceof ReadModelError) return null;
      throw error;
    }
  }

  async #lookUp(views: readonly Projection[]): Promise<ReachedViews> {
    const { readModel } = this.#dependencies;
    const reached = await Promise.all(views.map((view) => readModel.checkpoint(view)));
    const position = reached.reduce((least, each) => (each < least ? each : least));
    return { position, versions: new Map() };
  }
}
