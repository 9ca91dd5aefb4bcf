import { nameBasedId } from './ids.ts';
import { DEFAULT_NAMESPACE } from './namespaces/namespace.ts';

/** The names of the streams. docs/explanation/architecture.md lists which facts each owns. */
export const streams = {
  agent: (id: string): string => `agent-${id}`,
  /** Names are unique within a namespace. */
  agentName: (namespace: string, name: string): string =>
    namespace === DEFAULT_NAMESPACE
      ? `agentname-${nameBasedId('agent name', name)}`
      : `agentname-${nameBasedId('agent name', namespace, name)}`,
  admins: (): string => 'admins',
  session: (id: string): string => `session-${id}`,
  /** A person, by the identity provider's id. */
  person: (issuer: string, subject: string): string =>
    `person-${nameBasedId('person', issuer, subject)}`,
  apiKey: (id: string): string => `apikey-${id}`,
  apiKeyUse: (id: string): string => `apikeyuse-${id}`,
  task: (id: string): string => `task-${id}`,
  fires: (taskId: string): string => `fires-${taskId}`,
  run: (id: string): string => `run-${id}`,
  backfill: (id: string): string => `backfill-${id}`,
  /** A secret of a namespace. */
  secret: (namespace: string, name: string): string =>
    `secret-${nameBasedId('secret', namespace, name)}`,
  webhook: (id: string): string => `webhook-${id}`,
  /** @param name of the worker, unique for its agent */
  worker: (agentId: string, name: string): string =>
    `worker-${nameBasedId('worker', agentId, name)}`,
  key: (kind: string, owner: string, key: string): string =>
    `key-${nameBasedId('key', kind, owner, key)}`,
  topic: (namespace: string, topic: string): string => `topic-${placedName(namespace, topic)}`,
  /** The payload of a published event, for the runs that it triggers. */
  payload: (eventId: string): string => `payload-${eventId}`,
  namespace: (name: string): string => `namespace-${name}`,
  operations: (): string => 'operations',
  imports: (): string => 'import',
  replays: (): string => 'replays',
  retention: (): string => 'retention',
  /** @param day `2026-11-21` */
  kept: (day: string): string => `kept-${day}`,
  projection: (name: string): string => `projection-${name}`,
  idempotency: (agentId: string, key: string): string =>
    `idem-${nameBasedId('idempotency', agentId, key)}`,
  /** @param day `2026-11-21` */
  refusals: (agentId: string, day: string): string => `refusals-${agentId}-${day}`,
  /** @param day `2026-11-21` */
  toolCalls: (agentId: string, day: string): string => `calls-${agentId}-${day}`,
  /** @param day `2026-11-21` */
  secretUses: (agentId: string, day: string): string => `uses-${agentId}-${day}`,
  /** @param day `2026-11-21` */
  auditReads: (agentId: string, day: string): string => `reads-${agentId}-${day}`,
} as const;

/** The part of a stream's name before the first `-`: `task-<id>` → `task`. */
export function kindOf(stream: string): string {
  return stream.split('-', 1)[0] ?? '';
}

/** The kinds of streams that the service itself writes; extensions write `demo` and `ext_…`. */
export const streamKinds = (): readonly string[] =>
  Object.values(streams).map((name) => kindOf(name('', '', '')));

/** The part after the first `-`: `task-<id>` → `<id>`. */
export function idOf(stream: string): string {
  return stream.slice(stream.indexOf('-') + 1);
}

/**
 * The name of a topic, or of an extension's stream, in the log: outside `default` with its namespace. No topic has a
 * `~`, so names of `default` and of other namespaces never collide.
 */
export function placedName(namespace: string, name: string): string {
  return namespace === DEFAULT_NAMESPACE ? name : `~${namespace}~${name}`;
}

/** The namespace and topic of a stream: `topic-~<namespace>~<topic>`, in `default` `topic-<topic>`. */
export function topicIn(stream: string): { readonly namespace: string; readonly topic: string } {
  const id = idOf(stream);
  if (!id.startsWith('~')) return { namespace: DEFAULT_NAMESPACE, topic: id };
  const end = id.indexOf('~', 1);
  return { namespace: id.slice(1, end), topic: id.slice(end + 1) };
}
