import { decorate } from '../../domain/decorate.ts';
import { EventStoreError, type EventStore, type RecordedEvent } from '../../domain/event-store.ts';
import { ReadModelError, type ReadModel, type ViewWriter } from '../../projections/read-model.ts';

type Write = Parameters<ViewWriter['write']>[0];

/** A read model whose writes go through `write`, which may fail before or after the write. */
export function withWrites(
  readModel: ReadModel,
  write: (name: string, batch: Write, go: () => Promise<void>) => Promise<void>,
): ReadModel {
  return decorate(readModel, {
    openWriter: async (projection, options) => {
      const writer = await readModel.openWriter(projection, options);
      return decorate(writer, {
        write: (batch) => write(projection.name, batch, () => writer.write(batch)),
      });
    },
  });
}

/** A read model whose writers are closed through `close`, which may fail. */
export function withCloses(
  readModel: ReadModel,
  close: (name: string, go: () => Promise<void>) => Promise<void>,
): ReadModel {
  return decorate(readModel, {
    openWriter: async (projection, options) => {
      const writer = await readModel.openWriter(projection, options);
      return decorate(writer, { close: () => close(projection.name, () => writer.close()) });
    },
  });
}

/** A read model that fills generations in bulk only after `gate` has resolved. */
export function withFillingAfter(readModel: ReadModel, gate: Promise<void>): ReadModel {
  return decorate(readModel, {
    openWriter: async (projection, options) => {
      if (options.bulk) await gate;
      return readModel.openWriter(projection, options);
    },
  });
}

export const notAnswering = (): Error =>
  new ReadModelError('UNAVAILABLE', 'the read model does not respond');

/** A log whose followed events go through `change`, which may throw like a subscription. */
export function withEvents(
  store: EventStore,
  change: (event: RecordedEvent) => RecordedEvent,
): EventStore {
  return decorate(store, {
    async *subscribe(options) {
      for await (const message of store.subscribe(options)) {
        if (message.kind === 'events') {
          yield { kind: 'events', events: message.events.map(change) };
        } else {
          yield message;
        }
      }
    },
  });
}

export const ofNewerRelease = (): Error =>
  new EventStoreError('NEWER_SCHEMA', 'event type RunTeleported is not known to this release');
