import { ArchiveFault } from './archive-fault.ts';
import { contentOf, type MovedEvent } from '../../domain/events/event-line.ts';

/** Events of a window at most. */
const WINDOW = 1_000;

/** How far the events of a window may lie apart in time, where they may change places. Milliseconds. */
const MOMENT = 1_000;

/**
 * Events of an archive that go into a log together: counted from its first, so that they are the same ones whenever an
 * import goes on. Where many appends are under way at a time, an event changes its place within these alone.
 *
 * @param ofAMoment whether only such belong together as occurred within a second
 */
export async function* windowsOf(
  events: AsyncIterable<MovedEvent>,
  ofAMoment: boolean,
): AsyncGenerator<readonly MovedEvent[], void> {
  let window: MovedEvent[] = [];
  let begun = 0;
  for await (const event of events) {
    const at = ofAMoment ? occurrenceOf(event) : 0;
    const isFull = window.length >= WINDOW || Math.abs(at - begun) > MOMENT;
    if (window.length > 0 && isFull) {
      yield window;
      window = [];
    }
    if (window.length === 0) begun = at;
    window.push(event);
  }
  if (window.length > 0) yield window;
}

/** By its metadata, which are not parsed for this: every event comes through here. 0 where they don't say. */
function occurrenceOf({ metadata }: MovedEvent): number {
  const [, at = ''] = /"occurredAt":"([^"]*)"/.exec(metadata) ?? [];
  const instant = Date.parse(at);
  return Number.isNaN(instant) ? 0 : instant;
}

/** How far a log has got with an archive. */
export interface Compared {
  /** Events that it holds of it. */
  readonly found: number;
  /** What it lacks of the window in which it ends, in the archive's order. */
  readonly rest: readonly MovedEvent[];
}

/**
 * Compares what a log holds with an archive, window by window, until the log ends. The windows behind are left for the
 * caller to go on with.
 *
 * @param inOrder whether the events of a window have to stand as they do in the archive; else each has to be there, at
 *   its revision of its stream
 * @param onWindow called with the number of events found so far; what it throws ends the comparison
 * @throws ArchiveFault `refused` where the log holds another event
 */
export async function compareWithLog(
  there: AsyncGenerator<MovedEvent, void>,
  windows: AsyncGenerator<readonly MovedEvent[], void>,
  inOrder: boolean,
  onWindow: (found: number) => void,
): Promise<Compared> {
  let found = 0;
  try {
    for (;;) {
      const window = (await windows.next()).value ?? [];
      const open = new Map(window.map((event) => [placeOf(event), event]));
      // One further than the archive goes: there may be more in the log.
      const most = Math.max(1, window.length);
      for (let n = 0; n < most; n += 1) {
        const { value: present } = await there.next();
        if (present === undefined) return { found, rest: [...open.values()] };
        const due = inOrder ? window[n] : open.get(placeOf(present));
        if (due === undefined || contentOf(present) !== contentOf(due))
          throw strange(present, found);
        open.delete(placeOf(present));
        found += 1;
      }
      onWindow(found);
    }
  } finally {
    await there.return();
  }
}

const placeOf = ({ stream, revision }: MovedEvent): string => `${revision} ${stream}`;

function strange({ stream, revision, type }: MovedEvent, found: number): ArchiveFault {
  const what = `revision ${revision} of ${stream} (${type})`;
  const whose = `which is not event ${found + 1} of the archive`;
  return new ArchiveFault('refused', `the log is not empty: it holds ${what}, ${whose}`);
}
