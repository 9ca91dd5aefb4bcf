import { join } from 'node:path';
import type { Clock } from '../../domain/clock.ts';
import type { EventStore, NewEvent, Position } from '../../domain/event-store.ts';
import { newId } from '../../domain/ids.ts';
import {
  rebuildCommand,
  type ProjectionCommand,
} from '../../domain/operators/projection-commands.ts';
import type { RebuildSwitch } from '../../domain/vocabulary.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import { SystemClock } from '../../app/clock.ts';
import { silent } from '../../observability/telemetry.ts';
import type { FillElsewhere } from '../../projections/parallel-fill/parallel-fill.ts';
import { createProjector, type Projector } from '../../projections/projector/projector.ts';
import type { Projection, ReadModel } from '../../projections/read-model.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { openSqliteReadModel } from '../../stores/sqlite/read-model/read-model.ts';
import { LogOfTest } from './recorded.ts';
import { Signal } from '../support/signals.ts';
import { makeTemporaryDirectory } from '../support/temporary-directory.ts';

/** A log and a read model on disk, and projectors over them that can be started and stopped. */
export class ProjectorHarness {
  readonly log = new LogOfTest();
  readonly passed = new Signal<{ readonly name: string; readonly position: Position }>('steps');
  #store: EventStore;
  readonly readModel: ReadModel;
  /** The folder of the log. */
  readonly logDirectory: string;
  /** The folder of the views. */
  readonly viewDirectory: string;
  readonly #remove: () => Promise<void>;
  #appended = 0;
  #fence = 0;
  #running: { readonly stop: AbortController; readonly ended: Promise<void> }[] = [];

  private constructor(parts: {
    readonly store: EventStore;
    readonly readModel: ReadModel;
    readonly logDirectory: string;
    readonly viewDirectory: string;
    readonly remove: () => Promise<void>;
  }) {
    this.#store = parts.store;
    this.readModel = parts.readModel;
    this.logDirectory = parts.logDirectory;
    this.viewDirectory = parts.viewDirectory;
    this.#remove = parts.remove;
  }

  static async open(): Promise<ProjectorHarness> {
    const directory = await makeTemporaryDirectory();
    const logDirectory = join(directory.path, 'log');
    const store = await openLog(logDirectory);
    const viewDirectory = join(directory.path, 'views');
    const readModel = await openSqliteReadModel({ directory: viewDirectory, telemetry: silent });
    const remove = (): Promise<void> => directory.remove();
    return new ProjectorHarness({ store, readModel, logDirectory, viewDirectory, remove });
  }

  get store(): EventStore {
    return this.#store;
  }

  /** Opens the log again, as the next process would, so that everything kept in memory is read again. */
  async reopenLog(): Promise<void> {
    await this.#store.close();
    this.#store = await openLog(this.logDirectory);
  }

  /** Appends what was added to `log` since the last call; returns the log's head. */
  async append(): Promise<Position> {
    const added = this.log.events.slice(this.#appended);
    this.#appended = this.log.events.length;
    await Promise.all(
      added.map(({ stream, id, type, data, metadata }) =>
        this.store.append(stream, [{ id, type, data, metadata } as NewEvent], 'any'),
      ),
    );
    return this.store.head();
  }

  /** Starts a projector with the next fence. `readModel` may be one that fails on purpose, for example. */
  start(
    projections: readonly Projection[],
    parts: {
      readonly readModel?: ReadModel;
      readonly store?: EventStore;
      readonly clock?: Clock;
      readonly gatherMs?: number;
      readonly fillElsewhere?: FillElsewhere;
    } = {},
  ): Projector {
    this.#fence += 1;
    const projector = createProjector({
      store: this.store,
      readModel: this.readModel,
      clock: new SystemClock(),
      ...parts,
      projections,
      telemetry: silent,
      fence: this.#fence,
    });
    projector.onCheckpoint((name, position) => this.passed.send({ name, position }));
    const stop = new AbortController();
    this.#running.push({ stop, ended: projector.run(stop.signal) });
    return projector;
  }

  /** Orders a rebuild of a view, as an operator does. @returns its version */
  async rebuild(
    projection: Projection,
    ask: { readonly rate?: number; readonly switch?: RebuildSwitch } = {},
  ): Promise<number> {
    const known = Math.max(0, ...(await this.readModel.generations(projection)));
    const { rate = null, switch: how = 'auto' } = ask;
    const { state } = await rebuildCommand(this.order(projection), { rate, switch: how, known });
    return state.rebuild?.version ?? 0;
  }

  /** The parameters of an order for a view. */
  order({ name, schema }: Projection, now = Date.now()): ProjectionCommand {
    const id = newId(now);
    const context = { commandId: id, actor: 'agent-1', source: 'test', correlationId: id, now };
    return { store: this.store, name, schema, context };
  }

  /** Waits until the view of a name has passed a position. */
  async reached(projection: Projection, position: Position): Promise<void> {
    await this.passed.wait((step) => step.name === projection.name && step.position >= position, {
      what: `${projection.name} to pass ${position}`,
    });
  }

  /** Stops all projectors. */
  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = [];
    for (const { stop } of running) stop.abort();
    await Promise.all(running.map(({ ended }) => ended));
  }

  async close(): Promise<void> {
    await this.stop();
    await this.readModel.close();
    await this.store.close();
    await this.#remove();
  }
}

function openLog(directory: string): Promise<EventStore> {
  return openSqliteEventStore({ directory, codec: createEventCodec(), telemetry: silent });
}
