import type { Clock } from '../../domain/clock.ts';
import type { ProjectionEvent } from '../../domain/events/catalogue.ts';
import { load, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { appendOrder } from '../../domain/operators/projection-commands.ts';
import {
  projectionOrdersFold,
  type ProjectionOrders,
} from '../../domain/operators/projection-orders.ts';
import { streams } from '../../domain/streams.ts';
import type { ViewOptions } from './view-options.ts';

/** Metadata of the events that a projector appends to report. */
export function projectorContext(clock: Clock): CommandContext {
  const now = clock.now();
  const id = newId(now);
  return { commandId: id, actor: 'service', source: 'projector', correlationId: id, now };
}

/** The orders for one view, read and answered by a projector. */
export class ViewOrders {
  /** The orders, as last read. */
  current: ProjectionOrders;
  readonly #options: Pick<ViewOptions, 'store' | 'clock' | 'projection'>;

  constructor(options: Pick<ViewOptions, 'store' | 'clock' | 'projection'>) {
    this.#options = options;
    this.current = projectionOrdersFold(options.projection.schema).initial;
  }

  /** Reads them. @throws EventStoreError */
  async load(): Promise<ProjectionOrders> {
    const { store, projection } = this.#options;
    const { name, schema } = projection;
    const loaded = await load(store, streams.projection(name), projectionOrdersFold(schema));
    this.current = loaded.state;
    return loaded.state;
  }

  /** Appends a report of what was done. @returns the orders after it. @throws EventStoreError */
  async append(
    decide: (now: ProjectionOrders) => readonly ProjectionEvent[],
  ): Promise<ProjectionOrders> {
    const { store, clock, projection } = this.#options;
    const { name, schema } = projection;
    const context = projectorContext(clock);
    const { state } = await appendOrder({ store, name, schema, context }, decide);
    this.current = state;
    return state;
  }
}
