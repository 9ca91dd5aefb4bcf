import type { Clock } from '../../domain/clock.ts';
import {
  BEGINNING,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import type { WorkerEvent } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { namespaceField, namespaceOf } from '../../domain/namespaces/namespace.ts';
import { idOf } from '../../domain/streams.ts';
import { evolveWorker, type RegisteredWorker } from '../../domain/workers/worker.ts';
import type { ReadModel } from '../read-model.ts';
import {
  toolFrom,
  toolIn,
  toolKey,
  workerFrom,
  toolsProjection,
  workersProjection,
  type ToolDocument,
} from '../views/workers.ts';
import { loadView } from './load-view.ts';
import { WeighedCache } from './weighed-cache.ts';

/** Limits of the shared schemas: their number and their total characters of JSON. */
const MAX_SCHEMAS = 10_000;
const MAX_SCHEMA_WEIGHT = 16 * 1024 * 1024;

/** A worker, or the id of a worker that another one has replaced. */
export type FoundWorker = RegisteredWorker | 'replaced' | null;

/** Receives changes of the directory. */
export interface DirectoryListener {
  /** A worker was registered, replaced, drained or removed as silent. */
  readonly onWorker?: () => void;
}

/**
 * The workers and the tools that they offer, in memory: loaded from their views once and followed live. A tool stays
 * known after its workers are gone.
 */
export class WorkerDirectory {
  readonly #store: EventStore;
  readonly #readModel: ReadModel;
  readonly #listeners: DirectoryListener[] = [];
  /** Workers by stream. */
  readonly #named = new Map<string, RegisteredWorker>();
  /** The stream of each worker, by its id and by the ids of the workers that it has replaced. */
  readonly #streams = new Map<string, string>();
  /** Tools by namespace, then by name. */
  readonly #tools = new Map<string, Map<string, ToolDocument>>();
  readonly #schemas = new WeighedCache<JsonObject>({
    entries: MAX_SCHEMAS,
    weight: MAX_SCHEMA_WEIGHT,
  });
  #revision = 0;
  #reached: Position = BEGINNING;
  #level = false;
  #waiting: { readonly position: Position; readonly resolve: () => void }[] = [];

  constructor(store: EventStore, readModel: ReadModel) {
    this.#store = store;
    this.#readModel = readModel;
  }

  subscribe(listener: DirectoryListener): void {
    this.#listeners.push(listener);
  }

  /** Loads the views, then follows the log until the signal is aborted. */
  async follow(signal: AbortSignal, ready: () => void): Promise<void> {
    this.#level = false;
    const views = { store: this.#store, readModel: this.#readModel };
    const workers = await loadView(views, workersProjection, [], (worker, stream) =>
      this.#setWorker(stream, workerFrom(worker)),
    );
    const tools = await loadView(views, toolsProjection, [], (tool) => this.#setTool(tool));
    const after = workers < tools ? workers : tools;
    for await (const message of this.#store.subscribe({ after, prefixes: ['worker-'], signal })) {
      if (message.kind === 'events') for (const event of message.events) this.#take(event);
      else if (!this.#level) {
        this.#level = true;
        ready();
      }
      const position =
        message.kind === 'events' ? message.events.at(-1)?.position : message.position;
      if (position !== undefined && this.#level) this.#reach(position);
    }
  }

  /** Changes with each registered tool. */
  get revision(): number {
    return this.#revision;
  }

  /** A worker by its id. */
  find(workerId: string): FoundWorker {
    const stream = this.#streams.get(workerId);
    const worker = stream === undefined ? undefined : this.#named.get(stream);
    if (worker === undefined) return null;
    return worker.id === workerId ? worker : 'replaced';
  }

  /** The agent of a worker, even of one that was replaced; null for an unknown one. */
  ownerOf(workerId: string): Pick<RegisteredWorker, 'agent_id' | 'namespace'> | null {
    const stream = this.#streams.get(workerId);
    return (stream === undefined ? undefined : this.#named.get(stream)) ?? null;
  }

  /** A tool of a namespace, as last registered. */
  tool(namespace: string, name: string): ToolDocument | undefined {
    return this.#tools.get(namespace)?.get(name);
  }

  /** The tools of a namespace. */
  tools(namespace: string): Iterable<ToolDocument> {
    return this.#tools.get(namespace)?.values() ?? [];
  }

  workers(): IterableIterator<RegisteredWorker> {
    return this.#named.values();
  }

  /** Applies a change of a worker that this process has just made. @param position of the change */
  learn(name: string, worker: RegisteredWorker, position: Position): void {
    const stream = idOf(name);
    const known = this.#named.get(stream);
    if (known !== undefined && known.revision >= worker.revision) return;
    this.#setWorker(stream, worker);
    if (worker.state !== 'active') return;
    const { registered_at, namespace } = worker;
    const at = { registered_at, position, ...namespaceField(namespace) };
    for (const tool of worker.tools) {
      this.#setTool(toolFrom(tool, at, this.tool(namespace, tool.name) ?? null));
    }
  }

  /**
   * Resolves once the directory has all workers that are in the log now, or when the time is over.
   * @param limit milliseconds
   * @throws EventStoreError
   */
  async catchUp(clock: Pick<Clock, 'after'>, limit: number): Promise<void> {
    const position = await this.#store.head();
    if (this.#level && position <= this.#reached) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        cancel();
        this.#waiting = this.#waiting.filter((each) => each !== waiter);
        resolve();
      };
      const waiter = { position, resolve: end };
      const cancel = clock.after(limit, end);
      this.#waiting.push(waiter);
    });
  }

  #reach(position: Position): void {
    if (position > this.#reached) this.#reached = position;
    if (this.#waiting.length === 0) return;
    const reached = this.#reached;
    const passed = this.#waiting.filter((waiter) => waiter.position <= reached);
    for (const { resolve } of passed) resolve();
  }

  #take(event: RecordedEvent): void {
    if (event.fault !== undefined) return;
    const stream = idOf(event.stream);
    const known = this.#named.get(stream) ?? null;
    if (known === null || event.revision > known.revision) {
      const worker = evolveWorker(known, event as WorkerEvent, event);
      if (worker !== null) this.#setWorker(stream, worker);
    }
    if (event.type !== 'WorkerRegistered') return;
    const namespace = namespaceOf(event.data);
    for (const { name } of event.data.tools) {
      const known = this.tool(namespace, name) ?? null;
      const tool = toolIn(event, toolKey(namespace, name), known);
      if (tool !== null) this.#setTool(tool);
    }
  }

  #setWorker(stream: string, worker: RegisteredWorker): void {
    const tools = worker.tools.map((tool) => ({ ...tool, schema: this.#shared(tool.schema) }));
    const known = this.#named.get(stream);
    this.#named.set(stream, { ...worker, tools });
    for (const id of known?.replaced ?? []) this.#streams.delete(id);
    for (const id of [...worker.replaced, worker.id]) this.#streams.set(id, stream);
    for (const { onWorker } of this.#listeners) onWorker?.();
  }

  #setTool(tool: ToolDocument): void {
    const namespace = namespaceOf(tool);
    const tools = this.#tools.get(namespace) ?? new Map<string, ToolDocument>();
    const known = tools.get(tool.name);
    if (known !== undefined && known.position >= tool.position) return;
    tools.set(tool.name, { ...tool, schema: this.#shared(tool.schema) });
    this.#tools.set(namespace, tools);
    this.#revision += 1;
  }

  /** Returns the same object for equal schemas, so that each is compiled once. */
  #shared(schema: object): JsonObject {
    const text = JSON.stringify(schema);
    const known = this.#schemas.get(text);
    if (known !== undefined) return known;
    this.#schemas.set(text, schema as JsonObject);
    return schema as JsonObject;
  }
}
