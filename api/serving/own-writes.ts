import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { ReadModelError, type Projection } from '../../projections/read-model.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { checkPosition, havePassed, untilPassed } from '../positions.ts';

/** Agents whose last command is remembered. */
const KEPT = 100_000;

/** How a view was found to be. */
export interface Seen {
  /** It has passed this, at least. */
  readonly position: Position;
  /** What was found out of the versions of views since, for each list of these that was asked for. */
  readonly versions: Map<readonly Projection[], string | null>;
}

/** Reads see one's own writes: the last command of each agent through this process. */
export class OwnWrites {
  private readonly dependencies: ApiDependencies;
  private readonly last = new Map<string, Position>();
  /** How views were found to be in this turn of the event loop. */
  private readonly seen = new Map<Projection, Seen>();

  constructor(dependencies: ApiDependencies) {
    this.dependencies = dependencies;
  }

  /** A command of an agent was carried out. */
  note(agentId: string, position: Position): void {
    const known = this.last.get(agentId);
    if (known !== undefined && known >= position) return;
    this.last.delete(agentId);
    this.last.set(agentId, position);
    if (this.last.size <= KEPT) return;
    const [oldest] = this.last.keys();
    if (oldest !== undefined) this.last.delete(oldest);
  }

  /** Position of the agent's last command through this process. */
  of(agentId: string): Position {
    return this.last.get(agentId) ?? BEGINNING;
  }

  /**
   * Waits until views have passed the caller's last command, at most two seconds, then goes on with what there is;
   * and until they have passed `after`, where it is given. Both at a time.
   *
   * @returns null where nothing has to be waited for
   * @throws HttpError 503 when `after` is not passed in time, 400 when it is no position of this log
   */
  wait(
    views: readonly Projection[],
    own: Position,
    after: string | undefined,
  ): Promise<void> | null {
    if (after !== undefined) return this.waitForBoth(views, own, after);
    const passed = havePassed(this.dependencies, views, own);
    return passed instanceof Promise ? passed.then(() => undefined) : null;
  }

  private async waitForBoth(
    views: readonly Projection[],
    own: Position,
    after: string,
  ): Promise<void> {
    await checkPosition(this.dependencies.store, 'after', after);
    await untilPassed(this.dependencies, views, after, own);
  }

  /**
   * Up to which position all of some views are, at least. Requests of one turn of the event loop are told the same
   * where it is enough for them: looking is as much work as reading a document.
   *
   * @param enough what they are known to have passed
   */
  reached(views: readonly Projection[], enough: Position): Promise<Seen> | Seen {
    const [view] = views;
    if (view === undefined || views.length > 1) return this.reachedNow(views);
    const seen = this.seen.get(view);
    return seen !== undefined && seen.position >= enough ? seen : this.look(view);
  }

  /** What tells that views are as they were, looked at after how far they are; null where nothing can tell. */
  versionOf(views: readonly Projection[], { versions }: Seen): string | null {
    let version = versions.get(views);
    if (version === undefined) versions.set(views, (version = this.versionNow(views)));
    return version;
  }

  private versionNow(views: readonly Projection[]): string | null {
    const { readModel } = this.dependencies;
    try {
      let version = '';
      for (const view of views) {
        const own = readModel.version?.(view);
        if (own === undefined) return null;
        version += `${own} `;
      }
      return version;
    } catch (error) {
      // Whoever reads the view is told.
      if (error instanceof ReadModelError) return null;
      throw error;
    }
  }

  private async look(view: Projection): Promise<Seen> {
    const seen = await this.reachedNow([view]);
    if (this.seen.size === 0) setImmediate(() => this.seen.clear());
    this.seen.set(view, seen);
    return seen;
  }

  private async reachedNow(views: readonly Projection[]): Promise<Seen> {
    const { readModel } = this.dependencies;
    const reached = await Promise.all(views.map((view) => readModel.checkpoint(view)));
    const position = reached.reduce((least, each) => (each < least ? each : least));
    return { position, versions: new Map() };
  }
}
