import { EventStoreError, type EventStore, type RecordedEvent } from '../../domain/event-store.ts';
import { ReadModelError, type ReadModel, type ViewWriter } from '../../projections/read-model.ts';

type Write = Parameters<ViewWriter['write']>[0];

/** A read model of which each write goes through `write`, which may fail before or after doing it. */
export function withWrites(
  readModel: ReadModel,
  write: (name: string, batch: Write, go: () => Promise<void>) => Promise<void>,
): ReadModel {
  return new Proxy(readModel, {
    get(target, property) {
      if (property !== 'openWriter') {
        const member: unknown = Reflect.get(target, property);
        return typeof member === 'function' ? member.bind(target) : member;
      }
      const openWriter: ReadModel['openWriter'] = async (projection, options) => {
        const writer = await target.openWriter(projection, options);
        return {
          checkpoint: () => writer.checkpoint(),
          load: (keys) => writer.load(keys),
          write: (batch) => write(projection.name, batch, () => writer.write(batch)),
          page: (after, limit) => writer.page(after, limit),
          count: () => writer.count(),
          finish: () => writer.finish(),
          close: () => writer.close(),
        };
      };
      return openWriter;
    },
  });
}

/** A read model that fills generations in bulk only once `gate` has resolved. */
export function withFillingAfter(readModel: ReadModel, gate: Promise<void>): ReadModel {
  return new Proxy(readModel, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property);
      if (property !== 'openWriter') {
        return typeof member === 'function' ? member.bind(target) : member;
      }
      const openWriter: ReadModel['openWriter'] = async (projection, options) => {
        if (options.bulk) await gate;
        return target.openWriter(projection, options);
      };
      return openWriter;
    },
  });
}

export const notAnswering = (): Error =>
  new ReadModelError('UNAVAILABLE', 'the read model does not answer');

/** A log whose events come through `change` when they are followed; it may throw as a subscription does. */
export function withEvents(
  store: EventStore,
  change: (event: RecordedEvent) => RecordedEvent,
): EventStore {
  return new Proxy(store, {
    get(target, property) {
      if (property !== 'subscribe') {
        const member: unknown = Reflect.get(target, property);
        return typeof member === 'function' ? member.bind(target) : member;
      }
      const subscribe: EventStore['subscribe'] = async function* (options) {
        for await (const message of target.subscribe(options)) {
          if (message.kind === 'events') {
            yield { kind: 'events', events: message.events.map(change) };
          } else {
            yield message;
          }
        }
      };
      return subscribe;
    },
  });
}

export const ofNewerRelease = (): Error =>
  new EventStoreError('NEWER_SCHEMA', 'event type RunTeleported is not known to this release');
