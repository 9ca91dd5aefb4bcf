import type { Cancel, Clock } from '../../domain/clock.ts';
import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';
import { DEFAULT_NAMESPACE } from '../../domain/namespaces/namespace.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import {
  auditDocumentOf,
  auditProjection,
  isAudited,
  type EventFilters,
} from '../../projections/views/audit.ts';
import type { Names } from '../../projections/reading/names.ts';
import { matchingItems, type AuditItemFilters } from '../endpoints/history/audit-naming.ts';
import type { InReach } from '../endpoints/history/streams-in-reach.ts';
import { unavailable } from '../errors.ts';
import type { AuditItem } from '../schemas/response-schemas-audit.ts';
import type { Frame, LiveClient } from './live-client.ts';

/** The messages that report failures. */
const NOT_FOLLOWED = 'live audit could not follow the log';
const UNCHECKED = 'could not check the access of an auditor';

/** The most auditors of one process. Each has its own subscription to the log. */
const MAX_CLIENTS = 50;

/** Milliseconds between two checks of a client's access; every fifteenth sends a heartbeat. */
const BEAT = 1000;
const BEATS_PER_HEARTBEAT = 15;

/** Which audit entries a client watches. */
interface Watched {
  readonly filters: EventFilters & AuditItemFilters;
  /** Whether an event is in the client's reach; null: every event is. */
  readonly isVisible: InReach | null;
}

/** Streams the actions of agents as they become durable. Clients resume from the log. */
export class AuditTail {
  readonly #store: EventStore;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  readonly #beat: number;
  readonly #clients = new Map<LiveClient, Promise<void>>();
  /** Clients that were promised a place and have not joined yet. */
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

  /** Connected clients. */
  get size(): number {
    return this.#clients.size;
  }

  /**
   * Reserves a place for a client.
   * @returns the position at which its stream begins
   * @throws HttpError 503 with too many clients, or while the service stops; EventStoreError
   */
  async open(): Promise<Position> {
    if (this.#closed) throw unavailable('stream_store', 'the service is stopping');
    if (this.#clients.size + this.#opening >= MAX_CLIENTS) {
      throw unavailable('stream_store', `${MAX_CLIENTS} auditors are already connected`);
    }
    this.#opening += 1;
    try {
      return await this.#store.head();
    } finally {
      this.#opening -= 1;
    }
  }

  /** Streams the matching items to a client, starting at its position, until it leaves or loses access. */
  join(
    client: LiveClient,
    filters: EventFilters & AuditItemFilters,
    names: Names,
    isVisible: InReach | null,
  ): void {
    if (this.#closed) {
      client.end('shutdown');
      return;
    }
    const place = { reached: client.last };
    const following = this.#follow(client, { filters, isVisible }, names, place);
    this.#clients.set(client, following);
    const stop = this.#startBeat(client, place);
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

  /** Never rejects: its stream ends with the reason. */
  async #follow(
    client: LiveClient,
    { filters, isVisible }: Watched,
    names: Names,
    place: { reached: Position },
  ): Promise<void> {
    const { signal } = client;
    const from = { after: client.last, prefixes: auditProjection.streams, signal };
    try {
      for await (const message of this.#store.subscribe(from)) {
        this.#telemetry.failures.worked(NOT_FOLLOWED);
        if (message.kind === 'events') {
          const audited: RecordedEvent[] = [];
          for (const event of message.events) {
            if (!isAudited(event, filters)) continue;
            if (isVisible === null || (await isVisible(event))) audited.push(event);
          }
          const items = await matchingItems(audited.map(auditDocumentOf), filters, names);
          client.send(items.map(frameOf));
          await client.drained();
        }
        const passed =
          message.kind === 'caught-up' ? message.position : message.events.at(-1)?.position;
        place.reached = passed ?? place.reached;
      }
    } catch (error) {
      this.#telemetry.failures.failed(NOT_FOLLOWED, error);
      client.end('unavailable');
    }
  }

  /** Checks a client's access, and sends heartbeats. */
  #startBeat(client: LiveClient, place: { readonly reached: Position }): Cancel {
    let beats = 0;
    let forget: Cancel = () => {};
    const checkAccess = async (): Promise<void> => {
      try {
        if (!(await client.stillAdmitted())) client.end('access_ended');
        this.#telemetry.failures.worked(UNCHECKED);
      } catch (error) {
        this.#telemetry.failures.failed(UNCHECKED, error);
      }
    };
    const beat = (): void => {
      if (client.signal.aborted) return;
      beats += 1;
      if (beats % BEATS_PER_HEARTBEAT === 0) client.sendHeartbeat(place.reached);
      void checkAccess();
      schedule();
    };
    const schedule = (): void => {
      forget = this.#clock.after(this.#beat, beat, { background: true });
    };
    schedule();
    return () => forget();
  }
}

function frameOf(item: AuditItem): Frame {
  const { position, outcome } = item;
  const data = JSON.stringify(item);
  const text = `id: ${position}\nevent: audit.${outcome}\ndata: ${data}\n\n`;
  // Items out of reach were already filtered out.
  const namespace = DEFAULT_NAMESPACE;
  const noRun = { taskId: null, state: null, createdBy: null };
  return { position, namespace, ...noRun, bytes: Buffer.from(text) };
}
