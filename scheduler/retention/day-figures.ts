import { MAX_CLOCK_SKEW, fromIso, toIso } from '../../domain/clock.ts';
import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';
import { toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { streams } from '../../domain/streams.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import { dayOf } from '../../projections/views/statistics-days.ts';
import {
  statisticsProjection,
  type StatisticsDocument,
} from '../../projections/views/statistics.ts';
import { oldEvents } from './old-events.ts';

const DAY = 86_400_000;

/**
 * Limits per event: characters of JSON, and figures, each with histograms of a few KiB. A single figure may exceed
 * them.
 */
const MAX_CHARACTERS = 256 * 1024;
const MAX_FIGURES = 30;

/** The end of a UTC day, ISO 8601. */
export const endOfDay = (day: string): string => toIso(fromIso(`${day}T00:00:00.000Z`) + DAY);

/**
 * Records a day's figures before its runs are removed, so that statistics keep them when their view is rebuilt. They
 * are computed from the log by the view's own projection.
 *
 * @param day that ended at least {@link MAX_CLOCK_SKEW} ago
 * @param after a position before all events of the day
 * @param options.present as in {@link oldEvents}
 * @throws EventStoreError
 */
export async function recordDayFigures(
  store: EventStore,
  day: string,
  after: Position,
  options: {
    readonly context: () => CommandContext;
    readonly present: string;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { context, present, signal } = options;
  const stream = streams.kept(day);
  const [last] = await store.readStream(stream, { direction: 'backwards', limit: 1 });
  if (last?.type === 'StatisticsKept' && last.data.complete) return;
  const documents = new Map<string, StatisticsDocument>();
  const before = toIso(fromIso(endOfDay(day)) + MAX_CLOCK_SKEW);
  const asked = { prefix: 'run-', after, before, present, signal };
  for await (const { events } of oldEvents(store, asked)) {
    for (const event of events) addToDay(documents, event, day);
  }
  if (signal.aborted) return;
  const figures = [...documents.values()].map((document) => {
    const { day: _day, ...rest } = document;
    return rest as unknown as Figures;
  });
  // Each event gets its own append, because together they may be too large. After an interruption,
  // the day starts over.
  const parts = partsOf(figures);
  for (const [n, part] of parts.entries()) {
    const complete = n === parts.length - 1;
    const event = { type: 'StatisticsKept', data: { day, figures: part, complete } } as const;
    await store.append(stream, toNewEvents(stream, [event], context()), 'any');
  }
}

type Figures = DataOf<'StatisticsKept'>['figures'][number];

/** Splits figures into at least one part, which may be empty. */
function partsOf(figures: readonly Figures[]): readonly Figures[][] {
  const parts: Figures[][] = [[]];
  let characters = 0;
  for (const each of figures) {
    const { length } = JSON.stringify(each);
    const part = parts.at(-1);
    const isFull = characters + length > MAX_CHARACTERS || part?.length === MAX_FIGURES;
    if (part === undefined || (isFull && part.length > 0)) {
      parts.push([each]);
      characters = length;
    } else {
      part.push(each);
      characters += length;
    }
  }
  return parts;
}

/** Adds an event to the day's documents. The other documents only contain the last day of each task. */
function addToDay(
  documents: Map<string, StatisticsDocument>,
  event: RecordedEvent,
  day: string,
): void {
  if (event.fault !== undefined || dayOf(event.metadata.occurredAt) !== day) return;
  for (const key of statisticsProjection.keys(event)) {
    if (!key.endsWith(`/${day}`)) continue;
    const next = statisticsProjection.evolve(documents.get(key) ?? null, event, key);
    if (next !== null) documents.set(key, next);
  }
}
