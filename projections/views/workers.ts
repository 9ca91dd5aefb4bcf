import type { RecordedEvent } from '../../domain/event-store.ts';
import type { WorkerEvent } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { namespaceField, namespaceOf } from '../../domain/namespaces/namespace.ts';
import { idOf, placedName } from '../../domain/streams.ts';
import {
  evolveWorker,
  type OfferedTool,
  type RegisteredWorker,
} from '../../domain/workers/worker.ts';
import type { Projection } from '../read-model.ts';

/** The latest worker of each name. */
export type WorkerDocument = JsonObject &
  Omit<RegisteredWorker, 'namespace'> & {
    /** Left out in `default`. */
    readonly namespace?: string;
  };

export const workersProjection: Projection<WorkerDocument> = {
  name: 'workers',
  schema: 2,
  // Schema 1 cannot be filtered by namespace.
  readsOlder: [1],
  addedFields: { namespace: 2 },
  streams: ['worker-'],
  ownStreams: true,
  fields: {
    namespace: 'text',
    id: 'text',
    agent_id: 'text',
    state: 'text',
    registered_at: 'text',
  },
  indexes: [
    ['state', 'registered_at'],
    ['agent_id', 'state', 'registered_at'],
    ['namespace', 'state', 'registered_at'],
  ],
  covered: [['namespace'], ['namespace'], []],
  sparse: ['namespace'],
  keys: (event) => [idOf(event.stream)],
  evolve(document, event) {
    const known = document === null ? null : workerFrom(document);
    const worker = evolveWorker(known, event as WorkerEvent, event);
    if (worker === null) return null;
    const { namespace, ...rest } = worker;
    return { ...rest, ...namespaceField(namespace) } as WorkerDocument;
  },
};

/** The worker in the form that the API shows. */
export function workerFrom(document: WorkerDocument): RegisteredWorker {
  return { ...document, namespace: namespaceOf(document) };
}

/** A tool, as described by the worker of its namespace that last registered it. */
export type ToolDocument = JsonObject & {
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly name: string;
  readonly description: string;
  readonly schema: JsonObject;
  /** When this schema replaced another one. */
  readonly schema_since: string;
  readonly registered_at: string;
  /** The position of the event. */
  readonly position: string;
};

/** The tools that workers offer, or have offered. */
export const toolsProjection: Projection<ToolDocument> = {
  name: 'tools',
  schema: 2,
  streams: ['worker-'],
  fields: { name: 'text' },
  indexes: [['name']],
  keys: (event) =>
    event.type === 'WorkerRegistered'
      ? event.data.tools.map(({ name }) => toolKey(namespaceOf(event.data), name))
      : [],
  evolve: (tool, event, key) => toolIn(event, key, tool) ?? tool,
};

/** The key of a tool in a namespace. */
export const toolKey = (namespace: string, name: string): string => placedName(namespace, name);

/**
 * A tool as a registration describes it; null if the event has none with that key.
 * @param key of {@link toolKey}
 * @param before the tool as registered earlier; null for a new one
 */
export function toolIn(
  event: RecordedEvent,
  key: string,
  before: ToolDocument | null,
): ToolDocument | null {
  if (event.type !== 'WorkerRegistered') return null;
  const namespace = namespaceOf(event.data);
  const tool = event.data.tools.find(({ name }) => toolKey(namespace, name) === key);
  if (tool === undefined) return null;
  const { position, metadata } = event;
  const at = { registered_at: metadata.occurredAt, position, ...namespaceField(namespace) };
  return toolFrom(tool, at, before);
}

/** A tool, made from a worker's description and its registration. @param before as for {@link toolIn} */
export function toolFrom(
  { name, description, schema }: OfferedTool,
  at: Pick<ToolDocument, 'namespace' | 'registered_at' | 'position'>,
  before: ToolDocument | null,
): ToolDocument {
  const isSame = before !== null && JSON.stringify(before.schema) === JSON.stringify(schema);
  const schema_since = isSame ? before.schema_since : at.registered_at;
  return { name, description, schema: schema as JsonObject, schema_since, ...at };
}
