import type { RecordedEvent } from '../../domain/event-store.ts';
import type { WorkerEvent } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { idOf } from '../../domain/streams.ts';
import {
  evolveWorker,
  type OfferedTool,
  type RegisteredWorker,
} from '../../domain/workers/worker.ts';
import type { Projection } from '../read-model.ts';

/** The latest worker of each name. */
export type WorkerDocument = JsonObject & RegisteredWorker;

export const workersProjection: Projection<WorkerDocument> = {
  name: 'workers',
  schema: 1,
  streams: ['worker-'],
  ownStreams: true,
  fields: { id: 'text', agent_id: 'text', state: 'text', registered_at: 'text' },
  indexes: [
    ['state', 'registered_at'],
    ['agent_id', 'state', 'registered_at'],
  ],
  keys: (event) => [idOf(event.stream)],
  evolve: (worker, event) => evolveWorker(worker, event as WorkerEvent, event) as WorkerDocument,
};

/** A tool as the worker that registered it last describes it. */
export type ToolDocument = JsonObject & {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonObject;
  /** When this schema replaced another one. */
  readonly schema_since: string;
  readonly registered_at: string;
  /** Of the event. */
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
    event.type === 'WorkerRegistered' ? event.data.tools.map(({ name }) => name) : [],
  evolve: (tool, event, name) => toolIn(event, name, tool) ?? tool,
};

/**
 * A tool as a registration describes it; null where the event has none of that name.
 * @param before the tool as it was registered before; null for a new one
 */
export function toolIn(
  event: RecordedEvent,
  name: string,
  before: ToolDocument | null,
): ToolDocument | null {
  if (event.type !== 'WorkerRegistered') return null;
  const tool = event.data.tools.find((each) => each.name === name);
  if (tool === undefined) return null;
  const { position, metadata } = event;
  return toolFrom(tool, { registered_at: metadata.occurredAt, position }, before);
}

/** A tool from its description by a worker, and its registration. @param before as of {@link toolIn} */
export function toolFrom(
  { name, description, schema }: OfferedTool,
  at: Pick<ToolDocument, 'registered_at' | 'position'>,
  before: ToolDocument | null,
): ToolDocument {
  const isSame = before !== null && JSON.stringify(before.schema) === JSON.stringify(schema);
  const schema_since = isSame ? before.schema_since : at.registered_at;
  return { name, description, schema: schema as JsonObject, schema_since, ...at };
}
