import type { RecordedEvent } from '../../domain/event-store.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import { LogReader } from '../../stores/sqlite/event-log/reading/reader.ts';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';

/** One run, from its stream. */
export interface LoggedRun {
  readonly id: string;
  readonly events: readonly RecordedEvent[];
  /** Its first event: it was requested, or skipped. */
  readonly request: Extract<RecordedEvent, { type: 'RunRequested' | 'RunSkipped' }>;
  /** The published event that triggered it. */
  readonly eventId: string | undefined;
  /** Its last event; undefined while it runs. */
  readonly end: RecordedEvent | undefined;
}

const endings = ['RunSucceeded', 'RunFailed', 'RunCanceled', 'RunSkipped'];

export const isEnding = ({ type }: RecordedEvent): boolean => endings.includes(type);

/** The whole log of an embedded store as it is now, by stream. Read-only. */
export class Ledger {
  readonly events: readonly RecordedEvent[];
  readonly streams: ReadonlyMap<string, readonly RecordedEvent[]>;

  constructor(events: readonly RecordedEvent[]) {
    const streams = new Map<string, RecordedEvent[]>();
    for (const event of events) {
      const stream = streams.get(event.stream);
      if (stream === undefined) streams.set(event.stream, [event]);
      else stream.push(event);
    }
    this.events = events;
    this.streams = streams;
  }

  static read(dataDirectory: string): Ledger {
    const reader = new LogReader(logFile(dataDirectory), createEventCodec());
    try {
      const events: RecordedEvent[] = [];
      for (let at = 0; ;) {
        const { entries, upTo } = reader.page(at);
        if (entries.length === 0) return new Ledger(events);
        for (const entry of entries) events.push(entry.event());
        at = Number(upTo);
      }
    } finally {
      reader.close();
    }
  }

  /** Position of the last event. */
  get head(): string {
    return this.events.at(-1)?.position ?? '';
  }

  fires(taskId: string): readonly RecordedEvent[] {
    return this.streams.get(`fires-${taskId}`) ?? [];
  }

  /** All events of a type. */
  all<T extends RecordedEvent['type']>(type: T): Extract<RecordedEvent, { type: T }>[] {
    return this.events.filter((event) => event.type === type) as Extract<
      RecordedEvent,
      { type: T }
    >[];
  }

  /** Every run that was requested or skipped. */
  runs(): LoggedRun[] {
    return [...this.streams].flatMap(([stream, events]) => {
      const [request] = events;
      if (request?.type !== 'RunRequested' && request?.type !== 'RunSkipped') return [];
      return [
        {
          id: stream.slice('run-'.length),
          events,
          request,
          eventId: request.type === 'RunRequested' ? request.data.event?.id : undefined,
          end: events.find(isEnding),
        },
      ];
    });
  }
}
