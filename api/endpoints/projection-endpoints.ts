import { Type, type Static } from '@sinclair/typebox';
import { BEGINNING } from '../../domain/event-store.ts';
import {
  cancelRebuildCommand,
  parkedKeyCommand,
  pauseRebuildCommand,
  rebuildCommand,
  resumeRebuildCommand,
  rollbackCommand,
  switchCommand,
  type ProjectionCommand,
  type SeenVersion,
} from '../../domain/operators/projection-commands.ts';
import type { ProjectionOrders } from '../../domain/operators/projection-orders.ts';
import type { Handled } from '../../domain/handle.ts';
import type { ParkedOrder } from '../../domain/vocabulary.ts';
import {
  parkedProjection,
  parkedView,
  type ParkedDocument,
} from '../../projections/projector/parking.ts';
import {
  ReadModelError,
  type KeptDocument,
  type Projection,
} from '../../projections/read-model.ts';
import {
  ParkedKeyDone,
  ParkedKeyPage,
  Projections,
  RebuildBody,
  RebuildChanged,
  RebuildOrdered,
  SwitchBody,
  Switched,
} from '../schemas/answer-schemas-projections.ts';
import { endpoint, type Answer, type Call, type Endpoint } from '../endpoint.ts';
import { notFound } from '../errors.ts';
import { ReadQuery } from '../schemas/schemas.ts';
import { emptyPage, listPage, pageParameters } from './listing.ts';
import { carriedOut, projectionStates, versionRead } from '../serving/projection-state.ts';

const scopes = ['ops'] as const;
const refusals = ['not_found'] as const;

// No view of a log's events, so that there is nothing to wait for.
const { after: _noWaiting, ...parkedParameters } = pageParameters;
const ParkedQuery = Type.Object(parkedParameters);
type ParkedQuery = Static<typeof ParkedQuery>;

const list = endpoint({
  method: 'get',
  paths: ['/projections'],
  operationId: 'listProjections',
  summary: 'Lists the views with their generations, their lag and their rebuilds',
  scopes,
  query: ReadQuery,
  answers: { 200: Projections },
  async handle({ dependencies }) {
    const projections = await projectionStates(dependencies, dependencies.projections);
    return { body: { projections } };
  },
});

const rebuild = endpoint<RebuildBody | undefined>({
  method: 'post',
  paths: ['/projections/:name/rebuild'],
  operationId: 'rebuildProjection',
  summary: 'Makes the next generation of a view beside the one that is read',
  scopes,
  body: RebuildBody,
  bodyOptional: true,
  idempotent: true,
  refusals,
  answers: { 202: RebuildOrdered },
  async handle(call) {
    const projection = projectionOf(call);
    const { readModel } = call.dependencies;
    const known = Math.max(0, ...(await readModel.generations(projection)));
    const { rate = null, switch: how = 'auto' } = call.body ?? {};
    const ask = { rate, switch: how, known };
    const { state, position } = await rebuildCommand(commandOf(call, projection), ask);
    const version = state.rebuild?.version ?? 0;
    const details = { name: projection.name, version, rate, switch: how };
    const message = 'the next generation is being made';
    return { status: 202, body: { success: true, message, details }, position };
  },
});

/** An order to a rebuild that is under way. */
const change = (
  operationId: string,
  verb: string,
  summary: string,
  message: string,
  order: (command: ProjectionCommand) => Promise<Handled<ProjectionOrders>>,
): Endpoint =>
  endpoint({
    method: 'post',
    paths: [`/projections/:name/${verb}`],
    operationId,
    summary,
    scopes,
    idempotent: true,
    refusals,
    answers: { 200: RebuildChanged },
    async handle(call) {
      const projection = projectionOf(call);
      const { events, position } = await order(commandOf(call, projection));
      const [event] = events;
      const version = event !== undefined && 'version' in event.data ? event.data.version : 0;
      const details = { name: projection.name, version };
      return { body: { success: true, message, details }, position };
    },
  });

/** Lets reads go to another generation, and waits until they do. */
const redirect = (
  operationId: string,
  verb: string,
  summary: string,
  order: (command: ProjectionCommand, seen?: SeenVersion) => Promise<Handled<ProjectionOrders>>,
): Endpoint =>
  endpoint<SwitchBody | undefined>({
    method: 'post',
    paths: [`/projections/:name/${verb}`],
    operationId,
    summary,
    scopes,
    body: SwitchBody,
    bodyOptional: true,
    idempotent: true,
    refusals: [...refusals, 'precondition_failed'],
    answers: { 200: Switched },
    async handle(call) {
      const projection = projectionOf(call);
      const expected = call.body?.expected_version;
      const seen =
        expected === undefined
          ? undefined
          : { expected, ...(await versionRead(call.dependencies, projection)) };
      const ordered = await order(commandOf(call, projection), seen);
      const [event] = ordered.events;
      const wanted = event !== undefined && 'version' in event.data ? event.data.version : 0;
      const isDone = ({ live }: ProjectionOrders): boolean => live === wanted;
      const after = ordered.position ?? BEGINNING;
      const orders = await carriedOut(call.dependencies, projection, after, isDone);
      const { name } = projection;
      const details = {
        name,
        version: orders.live ?? 0,
        previous: orders.previous?.version ?? null,
        done: isDone(orders),
      };
      const message = details.done ? `reads go to version ${wanted}` : 'it is ordered';
      return { body: { success: true, message, details }, position: ordered.position };
    },
  });

const parked = endpoint<unknown, ParkedQuery>({
  method: 'get',
  paths: ['/projections/:name/parked'],
  operationId: 'listParkedKeys',
  summary: 'Lists the keys of a view that are held back since an event could not be folded',
  scopes,
  query: ParkedQuery,
  bulky: true,
  refusals,
  answers: { 200: ParkedKeyPage },
  async handle(call) {
    const projection = projectionOf(call);
    const { readModel } = call.dependencies;
    const live = (await readModel.liveGeneration(projection)) ?? 0;
    const value = parkedView(projection, live);
    const asked = {
      filters: [{ field: 'view', op: 'eq', value }],
      sort: [{ field: 'key', direction: 'ascending' }],
    } as const;
    try {
      return await listPage(readModel, parkedProjection, asked, call.query, show);
    } catch (error) {
      // Nothing was ever parked.
      if (!(error instanceof ReadModelError && error.code === 'NO_VIEW')) throw error;
      return { body: emptyPage(call.query) };
    }
  },
});

/** What becomes of a key that is held back. */
const settle = (order: ParkedOrder, summary: string): Endpoint =>
  endpoint({
    method: 'post',
    paths: [`/projections/:name/parked/:key/${order}`],
    operationId: `${order}ParkedKey`,
    summary,
    scopes,
    idempotent: true,
    refusals,
    answers: { 200: ParkedKeyDone },
    handle: (call) => settled(call, order),
  });

async function settled(call: Call, order: ParkedOrder): Promise<Answer> {
  const projection = projectionOf(call);
  const key = call.parameters['key'] ?? '';
  const { dependencies } = call;
  const version = (await dependencies.readModel.liveGeneration(projection)) ?? 0;
  if ((await parkedKey(call, projection, version, key)) === null) {
    throw notFound('parked key', key);
  }
  const ordered = await parkedKeyCommand(commandOf(call, projection), { version, key, order });
  const isDone = (orders: ProjectionOrders): boolean => !orders.parked.has(key);
  const after = ordered.position ?? BEGINNING;
  const orders = await carriedOut(dependencies, projection, after, isDone);
  const left = await parkedKey(call, projection, version, key);
  const error = left?.document.error ?? null;
  const details = { name: projection.name, key, order, done: isDone(orders), error };
  const message = error === null ? 'the key goes on' : `the key is held back: ${error}`;
  const shown = isDone(orders) ? message : 'it is ordered';
  return { body: { success: true, message: shown, details }, position: ordered.position };
}

/** Orders to the projector. */
export const projectionEndpoints: readonly Endpoint[] = [
  list,
  rebuild,
  redirect(
    'switchProjection',
    'switch',
    'Lets reads go to a rebuilt view that waits for it',
    switchCommand,
  ),
  change('pauseRebuild', 'pause', 'Lets a rebuild rest', 'the rebuild rests', pauseRebuildCommand),
  change(
    'resumeRebuild',
    'resume',
    'Lets a rebuild go on',
    'the rebuild goes on',
    resumeRebuildCommand,
  ),
  change(
    'cancelRebuild',
    'cancel',
    'Throws a rebuild away',
    'the rebuild is thrown away',
    cancelRebuildCommand,
  ),
  redirect(
    'rollBackProjection',
    'rollback',
    'Lets reads go back to the generation before',
    rollbackCommand,
  ),
  parked,
  settle('retry', 'Folds the event that a key is held back for after all, and what follows'),
  settle('skip', 'Leaves out the event that a key is held back for, and folds what follows'),
];

/** @throws HttpError 404 */
function projectionOf({
  dependencies,
  parameters,
}: Pick<Call, 'dependencies' | 'parameters'>): Projection {
  const name = parameters['name'] ?? '';
  const found = dependencies.projections.find((projection) => projection.name === name);
  if (found === undefined) throw notFound('projection', name);
  return found;
}

function commandOf({ dependencies, context }: Call, projection: Projection): ProjectionCommand {
  const { name, schema } = projection;
  return { store: dependencies.store, name, schema, context };
}

async function parkedKey(
  { dependencies }: Call,
  projection: Projection,
  version: number,
  key: string,
): Promise<KeptDocument<ParkedDocument> | null> {
  try {
    const view = parkedView(projection, version);
    return await dependencies.readModel.get(parkedProjection, `${view}/${key}`);
  } catch (error) {
    if (error instanceof ReadModelError && error.code === 'NO_VIEW') return null;
    throw error;
  }
}

function show({ view: _view, ...shown }: ParkedDocument): object {
  return shown;
}
