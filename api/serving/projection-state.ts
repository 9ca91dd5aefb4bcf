import { fromIso, toIso, type Instant } from '../../domain/clock.ts';
import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { load } from '../../domain/handle.ts';
import {
  projectionOrdersFold,
  type ProjectionOrders,
} from '../../domain/operators/projection-orders.ts';
import { streams } from '../../domain/streams.ts';
import { parkedProjection, parkedView } from '../../projections/projector/parking.ts';
import { isOfNow, recallReport } from '../../projections/projector/projection-report.ts';
import {
  rebuildStatus,
  type ProjectionStatus,
} from '../../projections/projector/projection-status.ts';
import { ReadModelError, type Projection } from '../../projections/read-model.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { HttpError } from '../errors.ts';

/** How long an order may take until it is carried out, while its caller waits. Milliseconds. */
const PATIENCE = 5_000;

/** Seconds until a client is to ask again at the latest. */
const LONGEST_RETRY = 30;

type Parts = Pick<ApiDependencies, 'store' | 'readModel' | 'coordination' | 'clock'>;

/**
 * What is answered while a view that a read needs is made for the first time, or in a new shape: how far each is that
 * can't be read, and when to ask again; and where nobody makes them, that, so that nobody waits for it in vain.
 */
export async function beingMade(
  parts: {
    readonly readModel: Pick<ApiDependencies['readModel'], 'liveGeneration'>;
    readonly coordination: Pick<ApiDependencies['coordination'], 'recall'>;
    readonly projections: readonly Projection[];
    readonly clock: Pick<ApiDependencies['clock'], 'now'>;
  },
  reads: readonly Projection[],
): Promise<HttpError> {
  const { readModel, coordination, projections, clock } = parts;
  const report = await recallReport(coordination, projections);
  const live = await Promise.all(reads.map((each) => readModel.liveGeneration(each)));
  const views = reads
    .filter((_, index) => live[index] === null)
    .map(({ name }) => {
      const told = report?.views.find((view) => view.name === name)?.rebuild ?? null;
      return { name, progress: told?.progress ?? 0, seconds_left: told?.seconds_left ?? null };
    });
  const seconds = Math.max(1, ...views.map(({ seconds_left }) => seconds_left ?? 1));
  const after = String(Math.min(LONGEST_RETRY, Math.ceil(seconds)));
  const names = views.map(({ name }) => name).join(', ');
  const isAtWork = report !== null && isOfNow(report, clock.now());
  const said = isAtWork
    ? `being made: ${names}`
    : `not yet made, and no projector is known to be at work: ${names}`;
  const message = names === '' ? 'a view was being made' : said;
  const details = { component: 'projections', views };
  return new HttpError('unavailable', message, details, { 'Retry-After': after });
}

/** The orders for a view. */
async function ordersOf(
  { store }: Pick<Parts, 'store'>,
  { name, schema }: Projection,
): Promise<ProjectionOrders> {
  const { state } = await load(store, streams.projection(name), projectionOrdersFold(schema));
  return state;
}

/** How views are: as the projector says, and what is ordered; where no projector runs, as the stores say. */
export async function projectionStates(
  parts: Parts,
  projections: readonly Projection[],
): Promise<readonly ProjectionStatus[]> {
  const { coordination, clock } = parts;
  const report = await recallReport(coordination, projections);
  const isFresh = report !== null && isOfNow(report, clock.now());
  return Promise.all(
    projections.map(async (projection) => {
      const { name, schema } = projection;
      const told = isFresh
        ? report.views.find((view) => view.name === name && view.schema === schema)
        : undefined;
      const orders = await ordersOf(parts, projection);
      const { rebuild, lastVersion } = orders;
      // What was ordered since the report was made stands in the log.
      const making = told?.rebuild ?? null;
      const isCurrent =
        making !== null && (making.version === rebuild?.version || making.version > lastVersion);
      const version = await versionOf(parts, projection, orders);
      const view = told ?? (await unattended(parts, projection, version));
      return {
        ...view,
        version,
        rebuild: rebuildStatus(rebuild, isCurrent ? making : null),
        previous: previousOf(orders, clock.now()),
      };
    }),
  );
}

/** Which version of a view is read (0: none), and by which switch of its orders that was found. */
export async function versionRead(
  parts: Pick<Parts, 'store' | 'readModel'>,
  projection: Projection,
): Promise<{ readonly found: number; readonly switched: number | null }> {
  const orders = await ordersOf(parts, projection);
  return { found: await versionOf(parts, projection, orders), switched: orders.live };
}

/** Which generation is read: where a switch was just said, the one that reads are about to go to. */
async function versionOf(
  { readModel }: Pick<Parts, 'readModel'>,
  projection: Projection,
  { live }: ProjectionOrders,
): Promise<number> {
  if (live !== null && (await readModel.generations(projection)).includes(live)) return live;
  return (await readModel.liveGeneration(projection)) ?? 0;
}

function previousOf({ previous }: ProjectionOrders, now: Instant): ProjectionStatus['previous'] {
  if (previous === null || previous.until <= now) return null;
  return { version: previous.version, until: toIso(previous.until) };
}

/** As it is where no projector looks after it. */
async function unattended(
  { store, readModel, clock }: Parts,
  projection: Projection,
  version: number,
): Promise<ProjectionStatus> {
  const { name, schema } = projection;
  const position = version === 0 ? BEGINNING : await readModel.checkpoint(projection);
  const [next] = await store.readAll(position, 1);
  const lag = next === undefined ? 0 : (clock.now() - fromIso(next.metadata.occurredAt)) / 1000;
  return {
    name,
    version,
    schema,
    state: 'stopped',
    position,
    lag_seconds: Math.max(0, lag),
    caught_up: next === undefined,
    handled: 0,
    parked: await parkedCount({ readModel }, projection, version),
    rebuild: null,
    previous: null,
    detail: 'no projector runs',
  };
}

async function parkedCount(
  { readModel }: Pick<Parts, 'readModel'>,
  projection: Projection,
  version: number,
): Promise<number> {
  try {
    const value = parkedView(projection, version);
    return await readModel.count(parkedProjection, [{ field: 'view', op: 'eq', value }]);
  } catch (error) {
    // Nothing was ever parked.
    if (error instanceof ReadModelError && error.code === 'NO_VIEW') return 0;
    throw error;
  }
}

/**
 * Waits until the projector has carried something out, for a while.
 * @param after position of the order
 * @returns the orders as they then stand
 */
export async function carriedOut(
  { store, clock }: Parts,
  projection: Projection,
  after: Position,
  isDone: (orders: ProjectionOrders) => boolean,
): Promise<ProjectionOrders> {
  const stop = new AbortController();
  const cancel = clock.after(PATIENCE, () => stop.abort());
  const prefixes = [streams.projection(projection.name)];
  try {
    for await (const message of store.subscribe({ after, prefixes, signal: stop.signal })) {
      if (message.kind !== 'events') continue;
      const orders = await ordersOf({ store }, projection);
      if (isDone(orders)) return orders;
    }
    return await ordersOf({ store }, projection);
  } finally {
    cancel();
    stop.abort();
  }
}
