import type { ServerSentEvent } from '../../../api/client/client.ts';
import { ServiceError, type QueryValue } from './client.ts';
import { CommandError, exitCodes } from './command-errors.ts';
import type { RunRecord } from './records.ts';
import type { Session } from './session.ts';

/** Milliseconds before each attempt to reconnect: about two minutes in all. */
const RECONNECT_DELAYS = [0, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000];

/** A change of a run on a live stream. */
export interface LiveChange {
  readonly at: string;
  readonly name: string;
  readonly run: RunRecord;
  readonly step: {
    readonly step: string;
    readonly status: string;
    readonly error: string | null;
  } | null;
  /** Lines of a running step. */
  readonly progressed?: { readonly log?: readonly { readonly message: string }[] };
}

/** The changes of runs on a live stream; otherwise as {@link liveMessages}. */
export async function* liveChanges(
  session: Session,
  path: string,
  query: Readonly<Record<string, QueryValue>> = {},
): AsyncGenerator<LiveChange | null> {
  for await (const message of liveMessages(session, path, query)) {
    if (message === null) yield null;
    else if (message.event.startsWith('run.')) {
      yield { ...(JSON.parse(message.data) as Omit<LiveChange, 'name'>), name: message.event };
    }
  }
}

/**
 * The messages of a live stream, without end. Reconnects after the last message received. null means that the stream is
 * open (again): a caller that reads the state now misses nothing.
 *
 * @throws CommandError when the service rejects the request, is unavailable at first, or stays unavailable
 */
export async function* liveMessages(
  session: Session,
  path: string,
  query: Readonly<Record<string, QueryValue>> = {},
): AsyncGenerator<ServerSentEvent | null> {
  const { client, clock, environment } = session;
  let lastId: string | undefined;
  let wasConnected = false;
  for (let failures = 0; ; failures += 1) {
    try {
      for await (const message of client.live(path, query, lastId)) {
        failures = 0;
        wasConnected = true;
        if (message.id !== '') lastId = message.id;
        yield message.event === 'live.started' ? null : message;
      }
    } catch (error) {
      const isRejected = error instanceof ServiceError && error.exitCode !== exitCodes.unavailable;
      if (isRejected || !(error instanceof CommandError)) throw error;
      if (!wasConnected || failures + 1 >= RECONNECT_DELAYS.length) throw error;
    }
    const delay = RECONNECT_DELAYS[Math.min(failures + 1, RECONNECT_DELAYS.length - 1)] ?? 0;
    await clock.sleep(delay, environment.signal);
  }
}
