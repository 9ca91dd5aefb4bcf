import { CLOCK_SKEW, fromIso, toIso } from '../../domain/clock.ts';
import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';
import type { DomainEvent } from '../../domain/events/catalogue.ts';
import { toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { streams } from '../../domain/streams.ts';
import {
  dayOf,
  statisticsProjection,
  type DayDocument,
  type StatisticsDocument,
} from '../../projections/views/statistics.ts';
import { oldEvents } from './old-events.ts';

const DAY = 86_400_000;

/** Figures to an event: their histograms are a few KiB each at most. */
const FIGURES = 30;

/** The end of a UTC day, as the service writes instants. */
export const endOfDay = (day: string): string => toIso(fromIso(`${day}T00:00:00.000Z`) + DAY);

/**
 * Records the figures of a day before any of its runs is removed, so that statistics keep them, also when their view is
 * made anew from a log that has those runs no longer. They are folded from the log, by the fold of the view itself.
 *
 * @param day that has been over for {@link CLOCK_SKEW} at least
 * @param after a position before all events of that day
 * @throws EventStoreError
 */
export async function recordDayFigures(
  store: EventStore,
  day: string,
  after: Position,
  {
    context,
    present,
    signal,
  }: {
    readonly context: () => CommandContext;
    /** As {@link oldEvents} takes it. */
    readonly present: string;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const stream = streams.kept(day);
  const [last] = await store.readStream(stream, { direction: 'backwards', limit: 1 });
  if (last?.type === 'StatisticsKept' && last.data.complete) return;
  const documents = new Map<string, StatisticsDocument>();
  const before = toIso(fromIso(endOfDay(day)) + CLOCK_SKEW);
  for await (const { events } of oldEvents(store, {
    prefix: 'run-',
    after,
    before,
    present,
    signal,
  })) {
    for (const event of events) if (isOfDay(event, day)) fold(documents, event, day);
  }
  if (signal.aborted) return;
  const figures = [...documents.values()].map((document) => {
    const { day: _day, ...rest } = document as DayDocument;
    return rest;
  });
  const events: DomainEvent[] = [];
  for (let from = 0; from < Math.max(1, figures.length); from += FIGURES) {
    const some = figures.slice(from, from + FIGURES);
    const complete = from + FIGURES >= figures.length;
    events.push({ type: 'StatisticsKept', data: { day, figures: some, complete } });
  }
  // One at a time: together they might be larger than an append may be. One that was cut short begins again.
  for (const event of events) {
    await store.append(stream, toNewEvents(stream, [event], context()), 'any');
  }
}

function isOfDay(event: RecordedEvent, day: string): boolean {
  return event.fault === undefined && dayOf(event.metadata.occurredAt) === day;
}

/** The documents of the day alone: the other keys say of a task which day was its last. */
function fold(documents: Map<string, StatisticsDocument>, event: RecordedEvent, day: string): void {
  for (const key of statisticsProjection.keys(event)) {
    if (!key.endsWith(`/${day}`)) continue;
    const next = statisticsProjection.evolve(documents.get(key) ?? null, event, key);
    if (next !== null) documents.set(key, next);
  }
}
