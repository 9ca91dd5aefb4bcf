import { EventStoreError } from '../../domain/event-store.ts';
import { load } from '../../domain/handle.ts';
import { DEFAULT_NAMESPACE } from '../../domain/namespaces/namespace.ts';
import type { Quotas } from '../../domain/namespaces/quotas.ts';
import {
  createNamespaceCommand,
  deleteNamespaceCommand,
  updateNamespaceCommand,
} from '../../domain/namespaces/namespace-commands.ts';
import {
  namespaceFold,
  requireNamespace,
  type NamespaceState,
  type QuotaChange,
} from '../../domain/namespaces/namespace-state.ts';
import { effectiveQuotas } from '../../domain/namespaces/stored-quotas.ts';
import { idOf, streams } from '../../domain/streams.ts';
import { EVERY_NAMESPACE, reaches, within } from '../../projections/reach.ts';
import { shapeRead } from '../../projections/generations/older-shape.ts';
import { agentFilters, agentsProjection } from '../../projections/views/agents.ts';
import { secretsProjection } from '../../projections/views/secrets.ts';
import { liveTasksIn, tasksProjection } from '../../projections/views/tasks.ts';
import { namespaceAdmin } from '../access/namespace-admins.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { endpoint, etag, success, type Call, type Endpoint } from '../endpoint.ts';
import { HttpError, notFound } from '../errors.ts';
import { requirePassed } from '../positions.ts';
import {
  CreateNamespace,
  Namespace,
  NamespaceDeleted,
  NamespacePage,
  NamespaceQuery,
  UpdateNamespace,
} from '../schemas/namespace-schemas.ts';
import { invalidCursor } from './listing.ts';

const admins = ['admin'] as const;
const administrators = ['admin', namespaceAdmin] as const;

const create = endpoint('POST /namespaces', {
  operationId: 'createNamespace',
  summary: 'Creates a namespace',
  scopes: admins,
  body: CreateNamespace,
  idempotent: true,
  responses: { 201: Namespace },
  responseHeaders: ['Location', 'ETag'],
  async handle({ dependencies, body, context }) {
    const { name, description = null, quotas = {} } = body;
    await requirePresentShapes(dependencies);
    const { store } = dependencies;
    const given = { description, quotas };
    const handled = await createNamespaceCommand({ store, name, context }, given);
    dependencies.quotas.learn(name, handled);
    return {
      status: 201,
      body: show(dependencies, name, handled.state),
      headers: { Location: `/namespaces/${name}`, ...etag(handled.revision) },
      position: handled.position,
    };
  },
});

const list = endpoint('GET /namespaces', {
  operationId: 'listNamespaces',
  summary: 'Lists the namespaces that the caller administers, `default` first',
  scopes: administrators,
  query: NamespaceQuery,
  responses: { 200: NamespacePage },
  async handle({ dependencies, query, reach }) {
    const { store } = dependencies;
    if (reach !== EVERY_NAMESPACE) {
      return { body: { items: await shownOf(dependencies, [reach]), next_cursor: null } };
    }
    const { limit, cursor } = query;
    const after = cursor === undefined ? {} : { after: placeOf(cursor) };
    const { streams: found, next } = await pageOf(store, { prefix: 'namespace-', limit, ...after });
    const names = found
      .map(({ stream }) => idOf(stream))
      .filter((each) => each !== DEFAULT_NAMESPACE);
    const first = cursor === undefined ? [DEFAULT_NAMESPACE] : [];
    const items = await shownOf(dependencies, [...first, ...names]);
    return { body: { items, next_cursor: next === null ? null : cursorAt(next) } };
  },
});

const one = endpoint('GET /namespaces/:name', {
  operationId: 'getNamespace',
  summary: 'Shows a namespace',
  scopes: administrators,
  responses: { 200: Namespace },
  responseHeaders: ['ETag'],
  refusals: ['not_found'],
  async handle(call) {
    const name = nameInPath(call);
    const { store } = call.dependencies;
    const { state, revision } = await load(store, streams.namespace(name), namespaceFold(name));
    return { body: show(call.dependencies, name, state), headers: etag(revision) };
  },
});

const update = endpoint('PUT /namespaces/:name', {
  operationId: 'updateNamespace',
  summary: 'Changes the description or the quotas of a namespace',
  description:
    'For an admin, `quotas` replaces the `quota_bounds`. For an administrator of the namespace, it replaces the `own_quotas`, which may not exceed the `quota_bounds`. For a quota that is left out, `SVC_QUOTAS` applies, or there is no limit.',
  scopes: administrators,
  body: UpdateNamespace,
  ifMatch: true,
  responses: { 200: Namespace },
  responseHeaders: ['ETag'],
  refusals: ['not_found'],
  async handle(call) {
    const name = nameInPath(call);
    const { context, expectedRevision, dependencies } = call;
    const command = { store: dependencies.store, name, context, expectedRevision };
    const { description, quotas } = call.body;
    const change = quotas === undefined ? undefined : quotaChange(call, name, quotas);
    const handled = await updateNamespaceCommand(command, { description, quotas: change });
    dependencies.quotas.learn(name, handled);
    const { state, revision, position } = handled;
    return { body: show(dependencies, name, state), headers: etag(revision), position };
  },
});

const remove = endpoint('DELETE /namespaces/:name', {
  operationId: 'deleteNamespace',
  summary:
    'Deletes a namespace without agents; its records stay, and its name cannot be used again',
  scopes: admins,
  ifMatch: true,
  responses: { 200: NamespaceDeleted },
  refusals: ['not_found'],
  async handle(call) {
    const name = nameInPath(call);
    const { context, expectedRevision, dependencies } = call;
    const command = { store: dependencies.store, name, context, expectedRevision };
    const { position } = await deleteNamespaceCommand(command, () => isEmpty(dependencies, name));
    return success('the namespace is deleted', { name }, position);
  },
});

export const namespaceEndpoints: readonly Endpoint[] = [create, list, one, update, remove];

/** @throws HttpError 404 for a namespace out of reach */
function nameInPath({ parameters, reach }: Pick<Call, 'parameters' | 'reach' | 'own'>): string {
  const name = parameters['name'] ?? '';
  if (!reaches(reach, name)) throw notFound('namespace', name);
  return name;
}

/** An admin sets the bounds. Other callers administer only this namespace and set its own quotas within them. */
function quotaChange(
  { caller, dependencies }: Pick<Call, 'caller' | 'dependencies'>,
  name: string,
  quotas: Quotas,
): QuotaChange {
  const level = caller?.admin === true ? 'bounds' : 'own';
  return { level, quotas, boundsBy: (stored) => dependencies.quotas.boundsOf(name, stored) };
}

/** @throws RefusalError `NOT_FOUND` */
function show(
  { quotas }: Pick<ApiDependencies, 'quotas'>,
  name: string,
  state: NamespaceState,
): Namespace {
  const { description, created_at, updated_at, quotas: stored } = requireNamespace(state, name);
  const quota_bounds = quotas.boundsOf(name, stored);
  return {
    name,
    description,
    created_at,
    updated_at,
    quotas: effectiveQuotas(quota_bounds, stored.own),
    quota_bounds,
    own_quotas: stored.own,
  };
}

/** The names among these whose namespaces are not deleted. */
async function shownOf(
  dependencies: Pick<ApiDependencies, 'store' | 'quotas'>,
  names: readonly string[],
): Promise<Namespace[]> {
  const { store } = dependencies;
  const loaded = await Promise.all(
    names.map(async (name) => {
      const { state } = await load(store, streams.namespace(name), namespaceFold(name));
      return { name, state };
    }),
  );
  return loaded
    .filter(({ state }) => state.status === 'active' || state.status === 'closed')
    .map(({ name, state }) => show(dependencies, name, state));
}

/**
 * Whether a namespace has no agents, live tasks or secrets.
 * @throws HttpError 503 if the views lag behind the log's end
 */
async function isEmpty(dependencies: ApiDependencies, name: string): Promise<boolean> {
  const { store, readModel } = dependencies;
  const views = [agentsProjection, tasksProjection, secretsProjection];
  await requirePassed(dependencies, views, await store.head());
  const agents = await readModel.count(agentsProjection, agentFilters(name, {}));
  const tasks = await readModel.count(tasksProjection, liveTasksIn(name));
  return agents + tasks + (await readModel.count(secretsProjection, within(name))) === 0;
}

/**
 * Views of an older release do not know namespaces, so no namespace is created until the new views are built.
 * @throws HttpError 503
 */
async function requirePresentShapes({ readModel, projections }: ApiDependencies): Promise<void> {
  for (const projection of projections) {
    const shape = await shapeRead(readModel, projection);
    if (shape === null || shape.schema === projection.schema) continue;
    const message = `the view ${projection.name} is still being built for this release; try again once it is ready`;
    const details = { component: 'projections', view: projection.name };
    throw new HttpError('unavailable', message, details, { 'Retry-After': '5' });
  }
}

/** @throws HttpError 400 for a cursor of another log */
async function pageOf(
  store: ApiDependencies['store'],
  options: Parameters<ApiDependencies['store']['listStreams']>[0],
) {
  try {
    return await store.listStreams(options);
  } catch (error) {
    if (error instanceof EventStoreError && error.code === 'INVALID_EVENT') throw invalidCursor();
    throw error;
  }
}

const cursorAt = (place: string): string => Buffer.from(place).toString('base64url');
const placeOf = (cursor: string): string => Buffer.from(cursor, 'base64url').toString();
