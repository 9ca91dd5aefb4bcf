import type { ServerSentEvent } from '../../../api/client/client.ts';
import { CommandFault, exitCodes } from './faults.ts';
import { ServiceFault, type QueryValue } from './client.ts';
import type { RunRecord } from './records.ts';
import type { Session } from './session.ts';

/** Milliseconds before a lost connection is tried again: longer each time, and for some two minutes in all. */
const PAUSES = [0, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000];

/** A change of a run, as a live path tells it; null for the beginning of the stream. */
export interface LiveChange {
  readonly at: string;
  readonly name: string;
  readonly run: RunRecord;
  readonly step: {
    readonly step: string;
    readonly status: string;
    readonly error: string | null;
  } | null;
}

/**
 * The changes that a live path tells, without end; comes back after a lost connection, where it was. null says that
 * the path is open (again): what happened before may be read now without missing anything.
 *
 * @throws CommandFault when the service is not there at first, or stays away, or refuses
 */
export async function* liveChanges(
  session: Session,
  path: string,
  query: Readonly<Record<string, QueryValue>> = {},
): AsyncGenerator<LiveChange | null> {
  for await (const message of liveMessages(session, path, query)) {
    if (message === null) yield null;
    else if (message.event.startsWith('run.')) yield changeOf(message);
  }
}

/** As {@link liveChanges}, of any live path: its messages as they come. */
export async function* liveMessages(
  session: Session,
  path: string,
  query: Readonly<Record<string, QueryValue>> = {},
): AsyncGenerator<ServerSentEvent | null> {
  const { client, clock, surroundings } = session;
  let lastId: string | undefined;
  let wasThere = false;
  for (let lost = 0; ; lost += 1) {
    try {
      for await (const message of client.live(path, query, lastId)) {
        lost = 0;
        wasThere = true;
        if (message.id !== '') lastId = message.id;
        if (message.event === 'live.started') yield null;
        else yield message;
      }
    } catch (error) {
      const refused = error instanceof ServiceFault && error.exitCode !== exitCodes.unavailable;
      if (refused || !(error instanceof CommandFault)) throw error;
      // What was never there is not waited for.
      if (!wasThere || lost + 1 >= PAUSES.length) throw error;
    }
    const pause = PAUSES[Math.min(lost + 1, PAUSES.length - 1)] ?? 0;
    await clock.sleep(pause, surroundings.signal);
  }
}

function changeOf({ event, data }: ServerSentEvent): LiveChange {
  return { ...(JSON.parse(data) as Omit<LiveChange, 'name'>), name: event };
}
