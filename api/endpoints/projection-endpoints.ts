import { Type } from '@sinclair/typebox';
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
  type ViewDocument,
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
} from '../schemas/response-schemas-projections.ts';
import { endpoint, success, type Call, type Endpoint } from '../endpoint.ts';
import { notFound } from '../errors.ts';
import { ReadQuery } from '../schemas/schemas.ts';
import { emptyPage, listPage, pageParameters } from './listing.ts';
import { awaitOrder, projectionStates, versionRead } from '../serving/projection-state.ts';

const scopes = ['ops'] as const;
const refusals = ['not_found'] as const;

// This view is not built from the log, so there is no position to wait for.
const { after: _after, ...parkedParameters } = pageParameters;
const ParkedQuery = Type.Object(parkedParameters);

const list = endpoint('GET /projections', {
  operationId: 'listProjections',
  summary: 'Lists the views with their generations, their lag and their rebuilds',
  scopes,
  query: ReadQuery,
  responses: { 200: Projections },
  async handle({ dependencies }) {
    const projections = await projectionStates(dependencies, dependencies.projections);
    return { body: { projections } };
  },
});

const rebuild = endpoint('POST /projections/:name/rebuild', {
  operationId: 'rebuildProjection',
  summary: 'Builds the next generation of a view beside the one that is read',
  scopes,
  body: RebuildBody,
  bodyOptional: true,
  idempotent: true,
  refusals,
  responses: { 202: RebuildOrdered },
  async handle(call) {
    const projection = projectionOf(call);
    const { readModel } = call.dependencies;
    const known = Math.max(0, ...(await readModel.generations(projection)));
    const { rate = null, switch: how = 'auto' } = call.body ?? {};
    const order = { rate, switch: how, known };
    const { state, position } = await rebuildCommand(commandOf(call, projection), order);
    const version = state.rebuild?.version ?? 0;
    const details = { name: projection.name, version, rate, switch: how };
    return { ...success('the next generation is being built', details, position), status: 202 };
  },
});

/** A command on a running rebuild. */
const rebuildEndpoint = (
  verb: 'pause' | 'resume' | 'cancel',
  summary: string,
  message: string,
  command: (command: ProjectionCommand) => Promise<Handled<ProjectionOrders>>,
): Endpoint =>
  endpoint(`POST /projections/:name/${verb}`, {
    operationId: `${verb}Rebuild`,
    summary,
    scopes,
    idempotent: true,
    refusals,
    responses: { 200: RebuildChanged },
    async handle(call) {
      const projection = projectionOf(call);
      const { events, position } = await command(commandOf(call, projection));
      const details = { name: projection.name, version: versionIn(events) };
      return success(message, details, position);
    },
  });

/** Redirects reads to another generation, and waits until the switch is made. */
const redirectEndpoint = (
  verb: 'switch' | 'rollback',
  operationId: string,
  summary: string,
  command: (command: ProjectionCommand, seen?: SeenVersion) => Promise<Handled<ProjectionOrders>>,
): Endpoint =>
  endpoint(`POST /projections/:name/${verb}`, {
    operationId,
    summary,
    scopes,
    body: SwitchBody,
    bodyOptional: true,
    idempotent: true,
    refusals: [...refusals, 'precondition_failed'],
    responses: { 200: Switched },
    async handle(call) {
      const projection = projectionOf(call);
      const expected = call.body?.expected_version;
      const seen =
        expected === undefined
          ? undefined
          : { expected, ...(await versionRead(call.dependencies, projection)) };
      const { events, position } = await command(commandOf(call, projection), seen);
      const version = versionIn(events);
      const isDone = ({ live }: ProjectionOrders): boolean => live === version;
      const after = position ?? BEGINNING;
      const orders = await awaitOrder(call.dependencies, projection, after, isDone);
      const details = {
        name: projection.name,
        version: orders.live ?? 0,
        previous: orders.previous?.version ?? null,
        done: isDone(orders),
      };
      const message = details.done ? `reads go to version ${version}` : ORDERED;
      return success(message, details, position);
    },
  });

/** The message of an order that is not carried out yet. */
const ORDERED = 'the order is recorded; the projector has not carried it out yet';

const parked = endpoint('GET /projections/:name/parked', {
  operationId: 'listParkedKeys',
  summary: 'Lists the parked keys of a view: an event could not be applied to them',
  scopes,
  query: ParkedQuery,
  hasLargeResponse: true,
  refusals,
  responses: { 200: ParkedKeyPage },
  async handle(call) {
    const projection = projectionOf(call);
    const { readModel } = call.dependencies;
    const live = (await readModel.liveGeneration(projection)) ?? 0;
    const value = parkedView(projection, live);
    const filters = [{ field: 'view', op: 'eq', value }] as const;
    const sort = [{ field: 'key', direction: 'ascending' }] as const;
    const page = listPage(readModel, parkedProjection, { filters, sort }, call.query, show);
    return (await nullWithoutView(page)) ?? emptyPage(call.query);
  },
});

/** The commands on a parked key. */
const parkedKeyEndpoint = (order: ParkedOrder, summary: string): Endpoint =>
  endpoint(`POST /projections/:name/parked/:key/${order}`, {
    operationId: `${order}ParkedKey`,
    summary,
    scopes,
    idempotent: true,
    refusals,
    responses: { 200: ParkedKeyDone },
    async handle(call) {
      const { dependencies, parameters } = call;
      const projection = projectionOf(call);
      const key = parameters['key'] ?? '';
      const version = (await dependencies.readModel.liveGeneration(projection)) ?? 0;
      const view = parkedView(projection, version);
      const read = () => parkedKey(call, view, key);
      if ((await read()) === null) throw notFound('parked key', key);
      const command = commandOf(call, projection);
      const { position } = await parkedKeyCommand(command, { version, key, order });
      const isDone = (orders: ProjectionOrders): boolean => !orders.parked.has(key);
      const after = position ?? BEGINNING;
      const done = isDone(await awaitOrder(dependencies, projection, after, isDone));
      const error = (await read())?.document.error ?? null;
      const details = { name: projection.name, key, order, done, error };
      const message =
        error === null ? 'the key is no longer parked' : `the key is still parked: ${error}`;
      return success(done ? message : ORDERED, details, position);
    },
  });

/** Commands to the projector. */
export const projectionEndpoints: readonly Endpoint[] = [
  list,
  rebuild,
  redirectEndpoint(
    'switch',
    'switchProjection',
    'Switches reads to a rebuilt view that waits for it',
    switchCommand,
  ),
  rebuildEndpoint('pause', 'Pauses a rebuild', 'the rebuild is paused', pauseRebuildCommand),
  rebuildEndpoint('resume', 'Resumes a rebuild', 'the rebuild is resumed', resumeRebuildCommand),
  rebuildEndpoint('cancel', 'Cancels a rebuild', 'the rebuild is canceled', cancelRebuildCommand),
  redirectEndpoint(
    'rollback',
    'rollBackProjection',
    'Switches reads back to the previous generation',
    rollbackCommand,
  ),
  parked,
  parkedKeyEndpoint('retry', 'Applies the event of a parked key again, and the following ones'),
  parkedKeyEndpoint('skip', 'Skips the event of a parked key, and applies the following ones'),
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

function commandOf(
  { dependencies, context }: Pick<Call, 'dependencies' | 'context'>,
  { name, schema }: Projection,
): ProjectionCommand {
  return { store: dependencies.store, name, schema, context };
}

function versionIn([event]: Handled<ProjectionOrders>['events']): number {
  return event !== undefined && 'version' in event.data ? event.data.version : 0;
}

function parkedKey(
  { dependencies }: Pick<Call, 'dependencies'>,
  view: string,
  key: string,
): Promise<ViewDocument<ParkedDocument> | null> {
  return nullWithoutView(dependencies.readModel.get(parkedProjection, `${view}/${key}`));
}

/** The view of parked keys does not exist before the first key is parked. */
async function nullWithoutView<T>(read: Promise<T>): Promise<T | null> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof ReadModelError && error.code === 'NO_VIEW') return null;
    throw error;
  }
}

function show({ view: _view, ...shown }: ParkedDocument): object {
  return shown;
}
