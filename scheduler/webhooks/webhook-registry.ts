import { agentFold } from '../../domain/agents/agent.ts';
import { fromIso, type Instant } from '../../domain/clock.ts';
import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';
import type { AgentEvent } from '../../domain/events/catalogue.ts';
import { idOf, streams } from '../../domain/streams.ts';
import { DELIVERY_LIFETIME } from '../../domain/webhooks/webhook.ts';
import { agentsProjection } from '../../projections/views/agents.ts';
import { loadView } from '../../projections/reading/load-view.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { readWholeStream } from '../read-stream.ts';

/** Secret versions that sign a message: each makes a header longer. */
const MAX_SIGNATURES = 5;

/** An agent's webhook, as it is now. */
export interface Webhook {
  /** With placeholders of secrets. */
  readonly url: string;
  /** The agent's namespace, whose secrets the address uses. */
  readonly namespace: string;
  /** The position at which the agent set this URL. It is not notified of earlier events. */
  readonly since: Position;
  /** The version of its secret; 0 before the first secret was shown. */
  readonly secretVersion: number;
  /** When the latest versions were created, the current one last. */
  readonly rotatedAt: readonly Instant[];
}

/** The agents that have a webhook, in memory. */
export class WebhookRegistry {
  readonly #store: EventStore;
  readonly #readModel: ReadModel;
  readonly #webhooks = new Map<string, Webhook>();
  /** The last pending read of each agent that is being read. */
  readonly #reads = new Map<string, Promise<void>>();

  constructor(store: EventStore, readModel: ReadModel) {
    this.#store = store;
    this.#readModel = readModel;
  }

  get size(): number {
    return this.#webhooks.size;
  }

  get(agentId: string): Webhook | undefined {
    return this.#webhooks.get(agentId);
  }

  /** Like {@link get}, but reads the agent's stream if it is unknown: its events may not have arrived yet. */
  async find(agentId: string): Promise<Webhook | undefined> {
    if (!this.#webhooks.has(agentId)) await this.#refresh(agentId);
    return this.#webhooks.get(agentId);
  }

  /** Reads all webhooks. @returns the position after which events have to be {@link take}n */
  async load(): Promise<Position> {
    this.#webhooks.clear();
    const ids: string[] = [];
    const stores = { store: this.#store, readModel: this.#readModel };
    const after = await loadView(stores, agentsProjection, [], (agent) => {
      if (agent.webhook_url !== null) ids.push(agent.id);
    });
    for (const id of ids) await this.#refresh(id);
    return after;
  }

  /** Takes in an agent's event by reading the agent's stream, because the stream is short and such events are rare. */
  async take(event: RecordedEvent): Promise<void> {
    const id = idOf(event.stream);
    const setsUrl =
      (event.type === 'AgentRegistered' && event.data.webhook_url !== null) ||
      (event.type === 'AgentUpdated' && event.data.changes.webhook_url !== undefined);
    if (setsUrl || this.#webhooks.has(id)) await this.#refresh(id);
  }

  /** Reads an agent after its earlier reads, so that an older result never overwrites a newer one. */
  async #refresh(id: string): Promise<void> {
    const before = this.#reads.get(id) ?? Promise.resolve();
    const read = before.catch(() => {}).then(() => this.#read(id));
    this.#reads.set(id, read);
    try {
      await read;
    } finally {
      if (this.#reads.get(id) === read) this.#reads.delete(id);
    }
  }

  async #read(id: string): Promise<void> {
    let state = agentFold.initial;
    let since: Position | null = null;
    const rotatedAt: Instant[] = [];
    for (const event of await readWholeStream(this.#store, streams.agent(id))) {
      const before = urlOf(state);
      state = agentFold.evolve(state, event as unknown as AgentEvent, event);
      if (urlOf(state) !== before) since = event.position;
      if (event.type === 'WebhookSecretRotated') rotatedAt.push(fromIso(event.metadata.occurredAt));
    }
    const url = urlOf(state);
    if (state.status !== 'registered' || url === null || since === null) this.#webhooks.delete(id);
    else {
      const { webhook_secret_version: secretVersion, namespace } = state;
      const latest = rotatedAt.slice(-MAX_SIGNATURES);
      this.#webhooks.set(id, { url, namespace, since, secretVersion, rotatedAt: latest });
    }
  }
}

function urlOf(state: typeof agentFold.initial): string | null {
  return state.status === 'registered' ? state.webhook_url : null;
}

/**
 * The secret versions to sign with, the current one first. Each version signs for a day after the next one was shown. A
 * caller that missed a new secret asks for another one, and its receiver then only knows the version before both.
 */
export function signingVersions(
  { secretVersion, rotatedAt }: Webhook,
  now: Instant,
): readonly number[] {
  const recent = rotatedAt.filter((at) => now < at + DELIVERY_LIFETIME).length;
  const older = Math.max(0, Math.min(recent, secretVersion - 1, MAX_SIGNATURES - 1));
  return Array.from({ length: older + 1 }, (_, age) => secretVersion - age);
}
