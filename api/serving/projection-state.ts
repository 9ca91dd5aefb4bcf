import { fromIso, toIso, type Instant } from '../../domain/clock.ts';
import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { load } from '../../domain/handle.ts';
import {
  projectionOrdersFold,
  type ProjectionOrders,
} from '../../domain/operators/projection-orders.ts';
import { streams } from '../../domain/streams.ts';
import { parkedProjection, parkedView } from '../../projections/projector/parking.ts';
import { isCurrent, recallReport } from '../../projections/projector/projection-report.ts';
import {
  rebuildStatus,
  type ProjectionStatus,
} from '../../projections/projector/projection-status.ts';
import { ReadModelError, type Projection } from '../../projections/read-model.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { HttpError } from '../errors.ts';
import { awaitState } from './await-state.ts';

/** Upper bound of `Retry-After`. Seconds. */
const MAX_RETRY_AFTER = 30;

type Stores = Pick<ApiDependencies, 'store' | 'readModel' | 'coordination' | 'clock'>;

/** The error of a read whose views are not built yet: their progress, when to retry, and whether any projector runs. */
export async function viewsUnavailable(
  {
    readModel,
    coordination,
    projections,
    clock,
  }: {
    readonly readModel: Pick<ApiDependencies['readModel'], 'liveGeneration'>;
    readonly coordination: Pick<ApiDependencies['coordination'], 'recall'>;
    readonly projections: readonly Projection[];
    readonly clock: Pick<ApiDependencies['clock'], 'now'>;
  },
  reads: readonly Projection[],
): Promise<HttpError> {
  const report = await recallReport(coordination, projections);
  const live = await Promise.all(reads.map((each) => readModel.liveGeneration(each)));
  const views = reads
    .filter((_, index) => live[index] === null)
    .map(({ name }) => {
      const rebuild = report?.views.find((view) => view.name === name)?.rebuild;
      return {
        name,
        progress: rebuild?.progress ?? 0,
        seconds_left: rebuild?.seconds_left ?? null,
      };
    });
  const seconds = Math.max(1, ...views.map(({ seconds_left }) => seconds_left ?? 1));
  const after = String(Math.min(MAX_RETRY_AFTER, Math.ceil(seconds)));
  const names = views.map(({ name }) => name).join(', ');
  const isBuilding = report !== null && isCurrent(report, clock.now());
  const state = isBuilding
    ? `views are being built: ${names}`
    : `views are not built, and no projector is running: ${names}`;
  const message = names === '' ? 'a view was being built; try again' : state;
  const details = { component: 'projections', views };
  return new HttpError('unavailable', message, details, { 'Retry-After': after });
}

async function ordersOf(
  { store }: Pick<Stores, 'store'>,
  { name, schema }: Projection,
): Promise<ProjectionOrders> {
  const { state } = await load(store, streams.projection(name), projectionOrdersFold(schema));
  return state;
}

/** The state of views, with pending orders: as the projector reports it or, if no projector runs, from the stores. */
export async function projectionStates(
  stores: Stores,
  projections: readonly Projection[],
): Promise<readonly ProjectionStatus[]> {
  const { coordination, clock } = stores;
  const report = await recallReport(coordination, projections);
  const isFresh = report !== null && isCurrent(report, clock.now());
  return Promise.all(
    projections.map(async (projection) => {
      const { name, schema } = projection;
      const reported = isFresh
        ? report.views.find((view) => view.name === name && view.schema === schema)
        : undefined;
      const orders = await ordersOf(stores, projection);
      const { rebuild, lastVersion } = orders;
      // The log contains the orders since the report.
      const running = reported?.rebuild ?? null;
      const isCurrent =
        running !== null && (running.version === rebuild?.version || running.version > lastVersion);
      const version = await versionOf(stores, projection, orders);
      const view = reported ?? (await stateWithoutProjector(stores, projection, version));
      return {
        ...view,
        version,
        rebuild: rebuildStatus(rebuild, isCurrent ? running : null),
        previous: previousOf(orders, clock.now()),
      };
    }),
  );
}

/** The version of a view that is read (0: none), and the version to which its orders last switched. */
export async function versionRead(
  stores: Pick<Stores, 'store' | 'readModel'>,
  projection: Projection,
): Promise<{ readonly found: number; readonly switched: number | null }> {
  const orders = await ordersOf(stores, projection);
  return { found: await versionOf(stores, projection, orders), switched: orders.live };
}

/** The generation that is read, or to which a pending switch leads. */
async function versionOf(
  { readModel }: Pick<Stores, 'readModel'>,
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

async function stateWithoutProjector(
  { store, readModel, clock }: Stores,
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
  { readModel }: Pick<Stores, 'readModel'>,
  projection: Projection,
  version: number,
): Promise<number> {
  try {
    const value = parkedView(projection, version);
    return await readModel.count(parkedProjection, [{ field: 'view', op: 'eq', value }]);
  } catch (error) {
    // No key was ever parked.
    if (error instanceof ReadModelError && error.code === 'NO_VIEW') return 0;
    throw error;
  }
}

/**
 * Waits until the projector has carried out an order, for five seconds at most.
 * @param after position of the order
 * @returns the orders at the end of the wait
 */
export async function awaitOrder(
  stores: Stores,
  projection: Projection,
  after: Position,
  isDone: (orders: ProjectionOrders) => boolean,
): Promise<ProjectionOrders> {
  const stream = streams.projection(projection.name);
  return awaitState(stores, { stream, after }, () => ordersOf(stores, projection), isDone);
}
