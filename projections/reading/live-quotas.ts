import type { EventStore } from '../../domain/event-store.ts';
import type { NamespaceEvent } from '../../domain/events/catalogue.ts';
import type { Loaded } from '../../domain/handle.ts';
import { DEFAULT_NAMESPACE } from '../../domain/namespaces/namespace.ts';
import type { NamespaceState } from '../../domain/namespaces/namespace-state.ts';
import {
  DEFAULT_WEIGHT,
  type QuotaSettings,
  type QuotaSource,
  type Quotas,
} from '../../domain/namespaces/quotas.ts';
import {
  boundsOf,
  effectiveQuotas,
  noQuotas,
  storedQuotasFold,
  type StoredQuotas,
} from '../../domain/namespaces/stored-quotas.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { LiveStreams } from './live-streams.ts';

/** The message that reports a failure. */
const NOT_READ = 'could not read the quotas of a namespace; using those of the settings';

/**
 * The quotas of namespaces, from the settings and the log. It follows the log, so a change takes effect in every
 * process.
 */
export class LiveQuotas implements QuotaSource {
  readonly #settings: QuotaSettings | undefined;
  readonly #stored: LiveStreams<StoredQuotas, NamespaceEvent>;
  readonly #failures: Telemetry['failures'];

  constructor(
    store: EventStore,
    settings: QuotaSettings | undefined,
    failures: Telemetry['failures'],
  ) {
    this.#settings = settings;
    this.#failures = failures;
    // Most namespaces have no stream.
    this.#stored = new LiveStreams(store, 'namespace-', storedQuotasFold, { keepsMissing: true });
    this.#stored.onChange((name) => {
      // Until the quotas of a namespace are known, its runs start by the slower path, even if there are no quotas.
      if (name === null) this.#readSoon(DEFAULT_NAMESPACE);
    });
  }

  /** Follows the log until the signal is aborted. */
  follow(signal: AbortSignal, started: () => void = () => {}): Promise<void> {
    return this.#stored.follow(signal, started);
  }

  of(namespace: string): Quotas | Promise<Quotas> {
    const loaded = this.#stored.getOrMissing(namespace);
    return loaded instanceof Promise
      ? loaded.then(({ state }) => this.#with(namespace, state))
      : this.#with(namespace, loaded.state);
  }

  peek(namespace: string): Quotas | undefined {
    const known = this.#stored.peek(namespace);
    if (known !== undefined) return this.#with(namespace, known.state);
    this.#readSoon(namespace);
    return undefined;
  }

  /** A namespace's share of starts. Until its stream has been read, the share in the settings applies. */
  readonly weightOf = (namespace: string): number => {
    const quotas = this.peek(namespace) ?? boundsOf(this.#settings, namespace, noQuotas);
    return quotas.weight ?? DEFAULT_WEIGHT;
  };

  /** Applies a change that a command of this process has just made to a namespace. */
  learn(namespace: string, { state, revision, position }: Loaded<NamespaceState>): void {
    if (state.status === 'none' || state.status === 'deleted') return;
    this.#stored.learn(namespace, { state: state.quotas, revision, position });
  }

  /** The limits that the administrators of a namespace may not exceed. */
  boundsOf(namespace: string, stored: StoredQuotas): Quotas {
    return boundsOf(this.#settings, namespace, stored);
  }

  #with(namespace: string, stored: StoredQuotas): Quotas {
    return effectiveQuotas(this.boundsOf(namespace, stored), stored.own);
  }

  #readSoon(namespace: string): void {
    Promise.resolve(this.#stored.getOrMissing(namespace)).then(
      () => this.#failures.worked(NOT_READ),
      (error: unknown) => this.#failures.failed(NOT_READ, error),
    );
  }
}
