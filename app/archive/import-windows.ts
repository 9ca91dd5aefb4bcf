import { contentOf, type MovedEvent } from '../../domain/events/event-line.ts';
import { ArchiveError } from './archive-error.ts';

/** Most events of a window. */
const MAX_EVENTS = 1_000;

/** Most milliseconds between events of a window that can change places. */
const MAX_SPAN = 1_000;

/**
 * Groups the events of an archive into windows, counted from its first event, so that a continued import has the same
 * ones. Concurrent appends change the order of events within a window only.
 *
 * @param isBySecond whether the events of a window must have occurred within a second
 */
export async function* windowsOf(
  events: AsyncIterable<MovedEvent>,
  isBySecond: boolean,
): AsyncGenerator<readonly MovedEvent[], void> {
  let window: MovedEvent[] = [];
  let start = 0;
  for await (const event of events) {
    const at = isBySecond ? occurredAt(event) : 0;
    if (window.length > 0 && (window.length >= MAX_EVENTS || Math.abs(at - start) > MAX_SPAN)) {
      yield window;
      window = [];
    }
    if (window.length === 0) start = at;
    window.push(event);
  }
  if (window.length > 0) yield window;
}

/** The time in the metadata; 0 if there is none. Every event is read here, so the metadata is not parsed. */
function occurredAt({ metadata }: MovedEvent): number {
  const [, at = ''] = /"occurredAt":"([^"]*)"/.exec(metadata) ?? [];
  const instant = Date.parse(at);
  return Number.isNaN(instant) ? 0 : instant;
}

/** How much of an archive a log has. */
export interface Compared {
  /** Number of its events in the log. */
  readonly found: number;
  /** The missing events of the window in which the log ends, in the archive's order. */
  readonly rest: readonly MovedEvent[];
}

/**
 * Compares a log with an archive, window by window, until the log ends. The caller continues with the later windows.
 *
 * @param inOrder whether the events of a window must be in the archive's order; otherwise each must be at its revision
 * @param onWindow receives the number of events found; an error that it throws ends the comparison
 * @throws ArchiveError `refused` if the log has another event
 */
export async function compareWithLog(
  present: AsyncGenerator<MovedEvent, void>,
  windows: AsyncGenerator<readonly MovedEvent[], void>,
  inOrder: boolean,
  onWindow: (found: number) => void,
): Promise<Compared> {
  let found = 0;
  try {
    for (;;) {
      const window = (await windows.next()).value ?? [];
      const missing = new Map(window.map((event) => [placeOf(event), event]));
      // One event beyond the archive, because the log can have more.
      for (let n = 0; n < Math.max(1, window.length); n += 1) {
        const { value: event } = await present.next();
        if (event === undefined) return { found, rest: [...missing.values()] };
        const expected = inOrder ? window[n] : missing.get(placeOf(event));
        if (expected === undefined || contentOf(event) !== contentOf(expected)) {
          const { stream, revision, type } = event;
          const what = `revision ${revision} of ${stream} (${type})`;
          const message = `the log is not empty: ${what} is not event ${found + 1} of the archive`;
          throw new ArchiveError('refused', message);
        }
        missing.delete(placeOf(event));
        found += 1;
      }
      onWindow(found);
    }
  } finally {
    await present.return();
  }
}

const placeOf = ({ stream, revision }: MovedEvent): string => `${revision} ${stream}`;
