import type { Cancel, Clock } from '../../domain/clock.ts';
import type { EventStore, Position } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import {
  auditDocumentOf,
  auditProjection,
  isAudited,
  type AuditFilters,
} from '../../projections/views/audit.ts';
import type { Names } from '../../projections/reading/names.ts';
import { namedItems, type AuditLooks } from '../endpoints/history/audit-naming.ts';
import { unavailable } from '../errors.ts';
import type { AuditItem } from '../schemas/answer-schemas-audit.ts';
import type { Frame, LiveClient } from '../client/live-client.ts';

/** Auditors who watch one process at a time: each follows the log by itself. */
const MOST_CLIENTS = 50;

/** Milliseconds from one look at a client to the next; a heartbeat goes out at each fifteenth. */
const BEAT = 1000;
const BEATS_TO_A_HEARTBEAT = 15;

/** What agents do, told as it becomes durable. Who was away goes on where it was, from the log. */
export class AuditTail {
  readonly #store: EventStore;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  readonly #beat: number;
  readonly #clients = new Map<LiveClient, Promise<void>>();
  /** Those who have been told that there is room, and do not watch yet. */
  #opening = 0;
  #closed = false;

  /** @param options.beat milliseconds */
  constructor(options: {
    readonly store: EventStore;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
    readonly beat?: number;
  }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#telemetry = options.telemetry;
    this.#beat = options.beat ?? BEAT;
  }

  /** How many watch. */
  get size(): number {
    return this.#clients.size;
  }

  /**
   * Whether there is room for one more, and from where it begins.
   * @throws HttpError 503 when too many watch, or the service stops; EventStoreError when the log is away
   */
  async open(): Promise<Position> {
    if (this.#closed) throw unavailable('stream_store', 'the service is stopping');
    if (this.#clients.size + this.#opening >= MOST_CLIENTS) {
      const message = `more than ${MOST_CLIENTS} auditors can't watch at once`;
      throw unavailable('stream_store', message);
    }
    this.#opening += 1;
    try {
      return await this.#store.head();
    } finally {
      this.#opening -= 1;
    }
  }

  /** Tells a client what it asks for, from where it is, until it goes or is not let in any longer. */
  join(client: LiveClient, wanted: AuditFilters & AuditLooks, names: Names): void {
    if (this.#closed) {
      client.end('shutdown');
      return;
    }
    const place = { reached: client.last };
    const following = this.#follow(client, { wanted, names }, place);
    this.#clients.set(client, following);
    const stop = this.#watchOver(client, place);
    void following.finally(() => {
      stop();
      this.#clients.delete(client);
    });
  }

  /** Ends all streams. */
  async close(): Promise<void> {
    this.#closed = true;
    const following = [...this.#clients.values()];
    for (const client of this.#clients.keys()) client.end('shutdown');
    await Promise.all(following);
  }

  /** Never rejects: a client who can't be served is told so. */
  async #follow(
    client: LiveClient,
    { wanted, names }: { readonly wanted: AuditFilters & AuditLooks; readonly names: Names },
    place: { reached: Position },
  ): Promise<void> {
    const { signal } = client;
    const from = { after: client.last, prefixes: auditProjection.streams, signal };
    try {
      for await (const message of this.#store.subscribe(from)) {
        if (message.kind === 'events') {
          const audited = message.events.filter((event) => isAudited(event, wanted));
          const items = await namedItems(audited.map(auditDocumentOf), wanted, names);
          client.send(items.map(frameOf));
          await client.drained();
        }
        const passed =
          message.kind === 'caught-up' ? message.position : message.events.at(-1)?.position;
        place.reached = passed ?? place.reached;
      }
    } catch (error) {
      this.#telemetry.log.warn('a live audit could not follow the log', { error });
      client.end('unavailable');
    }
  }

  /** Looks at a client's token, and keeps its connection known. */
  #watchOver(client: LiveClient, place: { readonly reached: Position }): Cancel {
    let beats = 0;
    let forget: Cancel = () => {};
    const look = async (): Promise<void> => {
      try {
        if (!(await client.counts())) client.end('access_ended');
      } catch (error) {
        this.#telemetry.log.warn("an auditor's token could not be looked at", { error });
      }
    };
    const arm = (): void => {
      forget = this.#clock.after(
        this.#beat,
        () => {
          if (client.signal.aborted) return;
          beats += 1;
          if (beats % BEATS_TO_A_HEARTBEAT === 0) client.beat(place.reached);
          void look();
          arm();
        },
        { background: true },
      );
    };
    arm();
    return () => forget();
  }
}

function frameOf(item: AuditItem): Frame {
  const { position, outcome } = item;
  const data = JSON.stringify(item);
  const text = `id: ${position}\nevent: audit.${outcome}\ndata: ${data}\n\n`;
  return { position, taskId: null, state: null, bytes: Buffer.from(text) };
}
