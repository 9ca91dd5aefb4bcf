import { BEGINNING, type Position } from '../domain/event-store.ts';
import type { Projection } from '../projections/read-model.ts';
import type { ApiDependencies } from './dependencies.ts';
import { badRequest, unavailable } from './errors.ts';

/** How long a read waits for its view. Milliseconds. */
const LIMIT = 2000;

/** Agents whose last command is remembered. */
const KEPT = 100_000;

/** Reads see one's own writes: the last command of each agent through this process. */
export class OwnWrites {
  private readonly dependencies: ApiDependencies;
  private readonly last = new Map<string, Position>();
  /** How far views were found to be in this turn of the event loop. */
  private readonly seen = new Map<Projection, Position>();

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
   * @throws HttpError 503 when `after` is not passed in time, 400 when it is no position of this log
   */
  async wait(
    views: readonly Projection[],
    own: Position,
    after: string | undefined,
  ): Promise<void> {
    if (after !== undefined) await this.checkPosition(after);
    const [, passed] = await Promise.all([
      this.passed(views, own),
      this.passed(views, after ?? BEGINNING),
    ]);
    if (!passed) {
      throw unavailable('projections', `the view has not reached ${after} within ${LIMIT} ms`);
    }
  }

  /**
   * Up to which position all of some views are, at least. Requests of one turn of the event loop are told the same
   * where it is enough for them: looking is as much work as reading a document.
   *
   * @param enough what they are known to have passed
   */
  async reached(views: readonly Projection[], enough: Position): Promise<Position> {
    const [view] = views;
    if (view === undefined || views.length > 1) return this.reachedNow(views);
    const seen = this.seen.get(view);
    if (seen !== undefined && seen >= enough) return seen;
    const position = await this.reachedNow(views);
    if (this.seen.size === 0) setImmediate(() => this.seen.clear());
    this.seen.set(view, position);
    return position;
  }

  private async reachedNow(views: readonly Projection[]): Promise<Position> {
    const { readModel } = this.dependencies;
    const reached = await Promise.all(views.map((view) => readModel.checkpoint(view)));
    return reached.reduce((least, position) => (position < least ? position : least));
  }

  private async passed(views: readonly Projection[], position: Position): Promise<boolean> {
    if (position === BEGINNING) return true;
    const { positions } = this.dependencies;
    const passed = await Promise.all(views.map((view) => positions.wait(view, position, LIMIT)));
    return !passed.includes(false);
  }

  /** Positions are of one width and ordered as text; more than that is the log's own affair. */
  private async checkPosition(after: string): Promise<void> {
    const head = await this.dependencies.store.head();
    const wellFormed = after.length === head.length && /^[0-9a-f]+$/.test(after);
    if (!wellFormed) throw badRequest([{ field: 'after', issue: 'is not a position of this log' }]);
    if (after > head) throw badRequest([{ field: 'after', issue: "lies beyond the log's end" }]);
  }
}
