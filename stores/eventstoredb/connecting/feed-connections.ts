import type { LogParts } from '../log-parts.ts';
import type { ConnectionSettings } from './connection-url.ts';
import { Connection } from './connection.ts';

/**
 * Subscriptions on the connection that reads and appends use; a process by itself needs fewer. A server allows 100 calls
 * per connection (Kestrel's `MaxStreamsPerConnection`), and the client silently queues the rest. Subscriptions never
 * end, so a hundred of them would block every read and append.
 */
const MAX_FEEDS_ON_FIRST = 40;

/** Subscriptions on each further connection. */
const MAX_FEEDS_ON_FURTHER = 80;

/** A connection lent to one subscription. */
export interface FeedConnection {
  readonly connection: Connection;
  /** Returns it; call exactly once. */
  readonly release: () => void;
}

interface Line {
  readonly connection: Connection;
  readonly room: number;
  feeds: number;
}

/** The connections of all subscriptions, opened as needed. */
export class FeedConnections {
  readonly #settings: ConnectionSettings;
  readonly #log: LogParts;
  /** The first is always there, and closed by its owner. */
  readonly #lines: [Line, ...(Line | undefined)[]];
  readonly #closing = new Set<Promise<void>>();

  constructor(settings: ConnectionSettings, log: LogParts) {
    this.#settings = settings;
    this.#log = log;
    this.#lines = [{ connection: log.connection, room: MAX_FEEDS_ON_FIRST, feeds: 0 }];
  }

  /** A connection with room for one more subscription. */
  take(): FeedConnection {
    const line = this.#lines.find((one) => one !== undefined && one.feeds < one.room);
    const taken = line ?? this.#another();
    taken.feeds += 1;
    return { connection: taken.connection, release: () => this.#release(taken) };
  }

  /** Closes all but the first. */
  async close(): Promise<void> {
    for (const line of this.#lines.slice(1)) if (line !== undefined) this.#end(line);
    await Promise.all(this.#closing);
  }

  #another(): Line {
    const free = this.#lines.indexOf(undefined);
    const place = free === -1 ? this.#lines.length : free;
    const { timings, telemetry } = this.#log;
    const connection = new Connection(this.#settings, timings, telemetry);
    const line = { connection, room: MAX_FEEDS_ON_FURTHER, feeds: 0 };
    this.#lines[place] = line;
    return line;
  }

  #release(line: Line): void {
    line.feeds -= 1;
    if (line.feeds === 0 && line !== this.#lines[0]) this.#end(line);
  }

  #end(line: Line): void {
    const place = this.#lines.indexOf(line);
    if (place === -1) return;
    this.#lines[place] = undefined;
    const closed = line.connection.close();
    this.#closing.add(closed);
    void closed.then(() => this.#closing.delete(closed));
  }
}
