import type { EventStore, RecordedEvent } from '../../domain/event-store.ts';
import { namespaceOfEvent } from '../../domain/events/metadata.ts';
import { isUuid } from '../../domain/ids.ts';
import { DEFAULT_NAMESPACE } from '../../domain/namespaces/namespace.ts';
import { idOf, kindOf, topicIn } from '../../domain/streams.ts';

export interface NamespaceSource {
  /** The namespace of a registered or removed agent; `default` for others. */
  readonly ofAgent: (id: string) => Promise<string>;
  /** The namespace of a task; `default` for one that never existed. */
  readonly ofTask: (id: string) => Promise<string>;
  readonly store: Pick<EventStore, 'readStream'>;
}

const MAX_STREAMS = 10_000;

/** The length of an id at the start of a stream's name: `calls-<agent>-<day>`. */
const ID_LENGTH = 36;

/** Streams about things of several namespaces. */
const shared: ReadonlySet<string> = new Set([
  'projection',
  'retention',
  'kept',
  'admins',
  'import',
]);

/** The namespaces of streams, for callers that read the log itself but do not reach every namespace. */
export class StreamNamespaces {
  readonly #source: NamespaceSource;
  readonly #known = new Map<string, string | null>();

  constructor(source: NamespaceSource) {
    this.#source = source;
  }

  /**
   * @param first its first event, if the caller has it
   * @returns null for a stream about several namespaces; `default` for one that does not exist
   */
  async of(stream: string, first?: RecordedEvent): Promise<string | null> {
    const known = this.#known.get(stream);
    if (known !== undefined) return known;
    const found = await this.#find(stream, first);
    this.#known.set(stream, found);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MAX_STREAMS && oldest !== undefined) this.#known.delete(oldest);
    return found;
  }

  #find(stream: string, first?: RecordedEvent): Promise<string | null> | string | null {
    const kind = kindOf(stream);
    const id = idOf(stream);
    if (shared.has(kind)) return null;
    switch (kind) {
      case 'task':
      case 'fires':
        return this.#source.ofTask(id);
      case 'agent':
        return this.#source.ofAgent(id);
      case 'refusals':
      case 'calls':
      case 'reads':
      case 'uses':
        // Streams of callers without a token are about several namespaces.
        return isUuid(id.slice(0, ID_LENGTH)) ? this.#source.ofAgent(id.slice(0, ID_LENGTH)) : null;
      case 'topic':
        return topicIn(stream).namespace;
      case 'namespace':
        return id;
      default:
        return this.#ofFirst(stream, first);
    }
  }

  async #ofFirst(stream: string, first?: RecordedEvent): Promise<string> {
    const [found] =
      first === undefined
        ? await this.#source.store.readStream(stream, { limit: 1, faulty: true })
        : [first];
    if (found === undefined || found.fault !== undefined) return DEFAULT_NAMESPACE;
    const named = namespaceOfEvent(found);
    if (named !== DEFAULT_NAMESPACE) return named;
    // Sessions, names, API keys and idempotency keys belong to an agent.
    const { agent_id, owner } = found.data as {
      readonly agent_id?: string;
      readonly owner?: string;
    };
    const agent = agent_id ?? owner;
    return agent === undefined ? DEFAULT_NAMESPACE : this.#source.ofAgent(agent);
  }
}
