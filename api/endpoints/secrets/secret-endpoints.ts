import { toIso, type Instant } from '../../../domain/clock.ts';
import { handle, type Handled } from '../../../domain/handle.ts';
import { nameBasedId } from '../../../domain/ids.ts';
import { requireOpenNamespace } from '../../../domain/namespaces/namespace-commands.ts';
import { namespaceOf } from '../../../domain/namespaces/namespace.ts';
import { hostEntryIssue } from '../../../domain/secrets/allowed-hosts.ts';
import { SECRET_NAME_PATTERN } from '../../../domain/secrets/secret-source.ts';
import {
  deleteSecret,
  requireSecret,
  secretFold,
  setSecret,
  type SecretState,
} from '../../../domain/secrets/secret.ts';
import { RefusalError, type Issue } from '../../../domain/errors.ts';
import { idOf, streams } from '../../../domain/streams.ts';
import { within } from '../../../projections/reach.ts';
import {
  secretsByName,
  secretsExpiringBy,
  secretsProjection,
  type LastUse,
  type SecretDocument,
} from '../../../projections/views/secrets.ts';
import {
  Secret,
  SecretDeleted,
  SecretPage,
  SecretQuery,
  SecretScopeQuery,
  SetSecret,
} from '../../schemas/secret-schemas.ts';
import { namespaceAdmin } from '../../access/namespace-admins.ts';
import { endpoint, etag, success, type Call, type Endpoint } from '../../endpoint.ts';
import { badRequest, notFound } from '../../errors.ts';
import { instant, instantOf } from '../history/instant.ts';
import { listPage } from '../listing.ts';
import { namespaceAskedFor } from './secret-namespace.ts';

const write = ['secrets:write', namespaceAdmin] as const;
/** Shows names, hosts and last uses; values cannot be read. */
const read = ['secrets:read', 'secrets:write', namespaceAdmin] as const;

/** The secret, or the namespace. */
const refusals = ['not_found'] as const;

const namePattern = new RegExp(SECRET_NAME_PATTERN);

// Takes no Idempotency-Key, because its record would contain a hash of the value.
const put = endpoint('PUT /secrets/:name', {
  operationId: 'setSecret',
  summary: 'Creates a secret of the namespace, or sets its next version',
  scopes: write,
  query: SecretScopeQuery,
  body: SetSecret,
  ifMatch: true,
  reads: [secretsProjection],
  responses: { 200: Secret, 201: Secret },
  refusals,
  responseHeaders: ['ETag'],
  async handle(call) {
    const { dependencies, body, context, expectedRevision } = call;
    const { store, readModel, secretStore } = dependencies;
    const name = newNameIn(call);
    const namespace = namespaceAskedFor(call);
    const { value, allow_hosts = [], allow_tasks = null } = body;
    checkHosts(allow_hosts);
    const expires_at = expiryOf(body.expires_at ?? null, context.now);
    await requireOpenNamespace(store, namespace);
    const tasks = allow_tasks === null ? null : allow_tasks.map((id) => id.toLowerCase());
    const given = { namespace, name, allow_hosts, allow_tasks: tasks, expires_at };
    const stream = streams.secret(namespace, name);
    let isNew = true;
    const handled = await handle({
      store,
      stream,
      fold: secretFold,
      decide: (state) => {
        isNew = state.status !== 'set';
        return setSecret(state, given, (of) => secretStore.cipher.seal(value, of));
      },
      context,
      expectedRevision,
    });
    secretStore.stored.learn(idOf(stream), handled);
    if (isNew) await deleteUnlessOpen(call, namespace, stream);
    const known = await readModel.get(secretsProjection, idOf(stream));
    const { revision, position } = handled;
    const shown = showHandled(handled, name, known?.document.last_used ?? null);
    return { status: isNew ? 201 : 200, body: shown, headers: etag(revision), position };
  },
});

const list = endpoint('GET /secrets', {
  operationId: 'listSecrets',
  summary: 'Lists secrets by name with their limits and last use, but without values',
  scopes: read,
  query: SecretQuery,
  reads: [secretsProjection],
  responses: { 200: SecretPage },
  refusals,
  async handle(call) {
    const { dependencies, query } = call;
    const until = instant('until', query.until);
    const { filters, sort } =
      until === undefined ? { filters: [], sort: secretsByName } : secretsExpiringBy(until);
    const asked = { filters: [...within(call.reach), ...filters], sort };
    return listPage(dependencies.readModel, secretsProjection, asked, query, showSecret);
  },
});

const get = endpoint('GET /secrets/:name', {
  operationId: 'getSecret',
  summary: 'Shows a secret without its value',
  scopes: read,
  query: SecretScopeQuery,
  reads: [secretsProjection],
  responses: { 200: Secret },
  refusals,
  responseHeaders: ['ETag'],
  async handle(call) {
    const name = nameIn(call);
    const id = idOf(streams.secret(namespaceAskedFor(call), name));
    const found = await call.dependencies.readModel.get(secretsProjection, id);
    if (!found) throw notFound('secret', name);
    return { body: showSecret(found.document), headers: etag(found.document.revision) };
  },
});

const remove = endpoint('DELETE /secrets/:name', {
  operationId: 'deleteSecret',
  summary: 'Deletes a secret; steps that use it will fail',
  scopes: write,
  query: SecretScopeQuery,
  ifMatch: true,
  responses: { 200: SecretDeleted },
  refusals,
  async handle(call) {
    const { dependencies, context, expectedRevision } = call;
    const { store, secretStore } = dependencies;
    const name = nameIn(call);
    const namespace = namespaceAskedFor(call);
    const stream = streams.secret(namespace, name);
    const handled = await handle({
      store,
      stream,
      fold: secretFold,
      admit: (state) => {
        if (state.status !== 'set') throw notFound('secret', name);
      },
      decide: deleteSecret,
      context,
      expectedRevision,
    });
    secretStore.stored.learn(idOf(stream), handled);
    return success('the secret is deleted', { name, namespace }, handled.position);
  },
});

export const secretEndpoints: readonly Endpoint[] = [put, list, get, remove];

/**
 * Deletes a new secret if its namespace was deleted at the same time. A secret that already exists prevents the
 * deletion of its namespace.
 * @throws RefusalError if so
 */
async function deleteUnlessOpen(
  { dependencies, context }: Pick<Call, 'dependencies' | 'context'>,
  namespace: string,
  stream: string,
): Promise<void> {
  const { store, secretStore } = dependencies;
  try {
    await requireOpenNamespace(store, namespace);
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    // This needs its own command id, because the command that set the secret has already appended to its stream.
    const commandId = nameBasedId('delete from a deleted namespace', context.commandId);
    const own = { ...context, commandId };
    const deleting = { store, stream, fold: secretFold, decide: deleteSecret, context: own };
    secretStore.stored.learn(idOf(stream), await handle(deleting));
    throw error;
  }
}

/** @throws HttpError 404 for an invalid name, which no secret can have */
function nameIn({ parameters }: Pick<Call, 'parameters'>): string {
  const name = parameters['name'] ?? '';
  if (!namePattern.test(name)) throw notFound('secret', name);
  return name;
}

/** @throws HttpError 400 for an invalid name */
function newNameIn({ parameters }: Pick<Call, 'parameters'>): string {
  const name = parameters['name'] ?? '';
  if (namePattern.test(name)) return name;
  const issue = 'must be 1 to 128 letters, digits and underscores, and must not start with a digit';
  throw badRequest([{ field: 'name', issue }]);
}

/** @throws HttpError 400 */
function checkHosts(entries: readonly string[]): void {
  const issues = entries.flatMap((entry, index): Issue[] => {
    const issue = hostEntryIssue(entry);
    return issue === null ? [] : [{ field: `allow_hosts.${index}`, issue }];
  });
  const [first, ...rest] = issues;
  if (first !== undefined) throw badRequest([first, ...rest]);
}

/** When a secret is to expire, normalized. @throws HttpError 400 for anything but an instant in the future */
function expiryOf(given: string | null, now: Instant): string | null {
  if (given === null) return null;
  const at = instantOf('expires_at', given, null);
  if (at > now) return toIso(at);
  const issue = `must be in the future, after ${toIso(now)}; leave it out for a secret that never expires`;
  throw badRequest([{ field: 'expires_at', issue }]);
}

/** A secret as clients see it. */
function showSecret({ id: _id, revision: _revision, ...secret }: SecretDocument): Secret {
  // Documents of an older shape lack the expiry.
  const { allow_hosts, allow_tasks, expires_at = null } = secret;
  return {
    ...secret,
    expires_at,
    namespace: namespaceOf(secret),
    allow_hosts: [...allow_hosts],
    allow_tasks: allow_tasks === null ? null : [...allow_tasks],
  };
}

function showHandled(
  { state, revision }: Handled<SecretState>,
  name: string,
  last_used: LastUse | null,
): Secret {
  const { status: _status, sealed, ...secret } = requireSecret(state, name);
  return showSecret({
    ...secret,
    key_id: sealed.key_id,
    last_used,
    id: '',
    revision: Number(revision),
  });
}
