import type { Telemetry } from '../../../observability/telemetry.ts';
import type { ConnectionSettings } from './connection-url.ts';
import { Connection } from './connection.ts';
import type { Timings } from './timings.ts';

/**
 * Subscriptions that share the connection of reads and appends: more than one process has by itself. A server takes 100
 * calls at a time of a connection (Kestrel's `MaxStreamsPerConnection`, which it leaves as it is), and the client keeps
 * what is beyond that until another call ends, without a word. Subscriptions don't end: a hundred of them, of clients
 * who wait for a run each, and nothing would be read or written any more, the runs that they wait for least of all.
 */
const ON_THE_FIRST = 40;

/** Subscriptions of each further connection. */
const ON_ANOTHER = 80;

/** A connection on loan to one subscription. */
export interface FeedConnection {
  readonly connection: Connection;
  /** Gives it back, exactly once. */
  readonly release: () => void;
}

interface Line {
  readonly connection: Connection;
  readonly room: number;
  feeds: number;
}

/** The connections of subscriptions: as many as there have to be. */
export class FeedConnections {
  readonly #settings: ConnectionSettings;
  readonly #timings: Timings;
  readonly #telemetry: Telemetry;
  /** By place; the first is there always, and closed by whoever has made it. */
  readonly #lines: [Line, ...(Line | undefined)[]];
  readonly #closing = new Set<Promise<void>>();

  constructor(parts: {
    readonly first: Connection;
    readonly settings: ConnectionSettings;
    readonly timings: Timings;
    readonly telemetry: Telemetry;
  }) {
    this.#settings = parts.settings;
    this.#timings = parts.timings;
    this.#telemetry = parts.telemetry;
    this.#lines = [{ connection: parts.first, room: ON_THE_FIRST, feeds: 0 }];
  }

  /** A connection that has room for one more subscription. */
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
    const connection = new Connection(this.#settings, this.#timings, this.#telemetry);
    const line = { connection, room: ON_ANOTHER, feeds: 0 };
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
