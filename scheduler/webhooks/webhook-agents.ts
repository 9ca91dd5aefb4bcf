import { agentFold } from '../../domain/agents/agent.ts';
import { fromIso, type Instant } from '../../domain/clock.ts';
import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';
import type { AgentEvent } from '../../domain/events/catalogue.ts';
import { idOf, streams } from '../../domain/streams.ts';
import { WEBHOOK_LIFE } from '../../domain/webhooks/webhook.ts';
import { agentsProjection } from '../../projections/views/agents.ts';
import { loadView } from '../../projections/reading/load-view.ts';
import type { ReadModel } from '../../projections/read-model.ts';

/** An agent's webhook, as it is now. */
export interface Webhook {
  readonly url: string;
  /** Where the agent got this address: it is told of nothing before. */
  readonly since: Position;
  /** Of its secret; 0 before the first was shown. */
  readonly secretVersion: number;
  /** When the latest versions were made, that one last; empty before the first. */
  readonly rotatedAt: readonly Instant[];
}

/** The agents that have a webhook, in memory. All others are not here: asking for one costs a look into a map. */
export class WebhookAgents {
  private readonly store: EventStore;
  private readonly readModel: ReadModel;
  private readonly known = new Map<string, Webhook>();
  /** Agents that are being read, each with its last reading. */
  private readonly reading = new Map<string, Promise<void>>();

  constructor(store: EventStore, readModel: ReadModel) {
    this.store = store;
    this.readModel = readModel;
  }

  get size(): number {
    return this.known.size;
  }

  get(agentId: string): Webhook | undefined {
    return this.known.get(agentId);
  }

  /** The same, from the agent's stream where it is not known here: what is told of it may not have been heard yet. */
  async find(agentId: string): Promise<Webhook | undefined> {
    if (!this.known.has(agentId)) await this.learn(agentId);
    return this.known.get(agentId);
  }

  /** Reads all of them. @returns the position from which what changes has to be {@link take}n */
  async load(): Promise<Position> {
    this.known.clear();
    const ids: string[] = [];
    const after = await loadView(
      { store: this.store, readModel: this.readModel },
      agentsProjection,
      [],
      (agent) => {
        if (agent.webhook_url !== null) ids.push(agent.id);
      },
    );
    for (const id of ids) await this.learn(id);
    return after;
  }

  /** Takes an event of an agent. What it means is read from its stream, which is short, and such events are rare. */
  async take(event: RecordedEvent): Promise<void> {
    const id = idOf(event.stream);
    const named =
      (event.type === 'AgentRegistered' && event.data.webhook_url !== null) ||
      (event.type === 'AgentUpdated' && event.data.changes.webhook_url !== undefined);
    if (named || this.known.has(id)) await this.learn(id);
  }

  /** One reading of an agent after the other: what an earlier one says counts for nothing behind a later one. */
  private async learn(id: string): Promise<void> {
    const before = this.reading.get(id) ?? Promise.resolve();
    const reading = before.catch(() => {}).then(() => this.read(id));
    this.reading.set(id, reading);
    try {
      await reading;
    } finally {
      if (this.reading.get(id) === reading) this.reading.delete(id);
    }
  }

  private async read(id: string): Promise<void> {
    let state = agentFold.initial;
    let since: Position | null = null;
    const rotatedAt: Instant[] = [];
    for (let from = 0; ;) {
      const events = await this.store.readStream(streams.agent(id), { from, limit: PAGE });
      for (const event of events) {
        const before = urlOf(state);
        state = agentFold.evolve(state, event as unknown as AgentEvent, event);
        if (urlOf(state) !== before) since = event.position;
        if (event.type === 'WebhookSecretRotated') {
          rotatedAt.push(fromIso(event.metadata.occurredAt));
        }
      }
      if (events.length < PAGE) break;
      from = (events.at(-1)?.revision ?? from) + 1;
    }
    const url = urlOf(state);
    if (state.status !== 'registered' || url === null || since === null) this.known.delete(id);
    else {
      const secretVersion = state.webhook_secret_version;
      const latest = rotatedAt.slice(-MOST_SIGNING);
      this.known.set(id, { url, since, secretVersion, rotatedAt: latest });
    }
  }
}

const PAGE = 1000;

function urlOf(state: typeof agentFold.initial): string | null {
  return state.status === 'registered' ? state.webhook_url : null;
}

/** Versions that sign at once: with each a header grows. */
const MOST_SIGNING = 5;

/**
 * Versions of the secret to sign with, the present one first: each signs for a day more after the next was shown. Who
 * did not get to see a new one asks for another, and its receiver knows but the one before both.
 */
export function signingVersions(
  { secretVersion, rotatedAt }: Webhook,
  now: Instant,
): readonly number[] {
  const young = rotatedAt.filter((at) => now < at + WEBHOOK_LIFE).length;
  const before = Math.min(young, secretVersion - 1, MOST_SIGNING - 1);
  return Array.from({ length: Math.max(0, before) + 1 }, (_, age) => secretVersion - age);
}
