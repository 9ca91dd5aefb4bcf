import type { EventStore } from '../../domain/event-store.ts';
import type { NamespaceEvent } from '../../domain/events/catalogue.ts';
import type { Loaded } from '../../domain/handle.ts';
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

/** What failures are reported as. */
const NOT_READ = 'could not read the quotas of a namespace; using those of the settings';

/** Namespaces without an event that are remembered. */
const MAX_UNSET = 10_000;

/** The quotas of namespaces: of the settings and of the log, which is followed, so that a change counts in every process. */
export class LiveQuotas implements QuotaSource {
  readonly #settings: QuotaSettings | undefined;
  readonly #stored: LiveStreams<StoredQuotas, NamespaceEvent>;
  readonly #failures: Telemetry['failures'];
  /** Namespaces without an event: `default`, most of the time. */
  readonly #unset = new Set<string>();
  /** Grows with each change that {@link #unset} must not miss. */
  #changes = 0;

  constructor(
    store: EventStore,
    settings: QuotaSettings | undefined,
    failures: Telemetry['failures'],
  ) {
    this.#settings = settings;
    this.#failures = failures;
    this.#stored = new LiveStreams(store, 'namespace-', storedQuotasFold);
    this.#stored.onChange((name) => {
      this.#changes += 1;
      if (name === null) this.#unset.clear();
      else this.#unset.delete(name);
    });
  }

  /** Follows the log until the signal is aborted. */
  follow(signal: AbortSignal, started: () => void = () => {}): Promise<void> {
    return this.#stored.follow(signal, started);
  }

  of(namespace: string): Quotas | Promise<Quotas> {
    const known = this.peek(namespace);
    if (known !== undefined) return known;
    return this.#load(namespace).then((stored) => this.#with(namespace, stored));
  }

  peek(namespace: string): Quotas | undefined {
    const stored = this.#unset.has(namespace) ? noQuotas : this.#stored.peek(namespace)?.state;
    return stored === undefined ? undefined : this.#with(namespace, stored);
  }

  /** A namespace's share of starts. Until its stream has been read, that of the settings. */
  readonly weightOf = (namespace: string): number => {
    const known = this.peek(namespace);
    if (known === undefined) {
      this.#load(namespace).then(
        () => this.#failures.worked(NOT_READ),
        (error: unknown) => this.#failures.failed(NOT_READ, error),
      );
    }
    const quotas = known ?? boundsOf(this.#settings, namespace, noQuotas);
    return quotas.weight ?? DEFAULT_WEIGHT;
  };

  /** Takes over what a command of this process has just made of a namespace. */
  learn(namespace: string, { state, revision, position }: Loaded<NamespaceState>): void {
    if (state.status === 'none' || state.status === 'deleted') return;
    this.#stored.learn(namespace, { state: state.quotas, revision, position });
    this.#changes += 1;
    this.#unset.delete(namespace);
  }

  /** What the administrators of a namespace may not exceed. */
  boundsOf(namespace: string, stored: StoredQuotas): Quotas {
    return boundsOf(this.#settings, namespace, stored);
  }

  #with(namespace: string, stored: StoredQuotas): Quotas {
    return effectiveQuotas(this.boundsOf(namespace, stored), stored.own);
  }

  async #load(namespace: string): Promise<StoredQuotas> {
    const changes = this.#changes;
    const { state, revision } = await this.#stored.get(namespace);
    // What changed meanwhile may be this stream.
    if (revision === 'none' && changes === this.#changes) {
      if (this.#unset.size >= MAX_UNSET) this.#unset.clear();
      this.#unset.add(namespace);
    }
    return state;
  }
}
