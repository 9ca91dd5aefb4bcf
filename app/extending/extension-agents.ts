import {
  publishWithinQuotas,
  requireEventRoom,
  type QuotaParts,
} from '../../api/access/count-quotas.ts';
import { countPayload } from '../../api/access/quota-gate.ts';
import type { KeyObject } from 'node:crypto';
import { signToken, type TokenKeys } from '../../api/access/tokens.ts';
import {
  agentFold,
  requireAgent,
  requireEnabled,
  type RegisteredAgent,
} from '../../domain/agents/agent.ts';
import { isOpenFor } from '../../domain/agents/session.ts';
import { registerAgentCommand } from '../../domain/agents/agent-registration.ts';
import { toIso, type Clock, type Instant } from '../../domain/clock.ts';
import { stringifyExactly } from '../../domain/exact-numbers.ts';
import { BEGINNING, type EventStore } from '../../domain/event-store.ts';
import { RefusalError } from '../../domain/errors.ts';
import { load, toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { nameBasedId, newId } from '../../domain/ids.ts';
import { isJsonObject } from '../../domain/json.ts';
import { publishEvent } from '../../domain/topics/publishing.ts';
import { isTopic } from '../../domain/schedule/topic-pattern.ts';
import { streams } from '../../domain/streams.ts';
import { MAX_PUBLISHED_BYTES } from '../../domain/topics/topic.ts';
import { ExtensionError, badInput } from '../../extensions/contract.ts';
import { rejectLostNumbers } from '../../extensions/host/provided/lost-numbers.ts';
import type { AgentPort, AgentExtension } from '../../extensions/host/ports.ts';
import type { Causation } from '../causation.ts';
import type { LiveIndexes } from '../roles/live-indexes.ts';

/**
 * Scopes of an extension's own agent. The scopes for events follow the capabilities granted when the agent is created. An
 * administrator may change them, as for any agent.
 */
function scopesOf({ granted }: AgentExtension): readonly string[] {
  const scopes = ['tasks:read', 'tasks:write', 'runs:read'];
  if (granted.includes('EVENTS_SUB')) scopes.push('events:read');
  if (granted.includes('EVENTS_PUB')) scopes.push('events:publish');
  return scopes;
}

/** A token is renewed this long before it expires, or at half of a shorter lifetime. Milliseconds. */
const RENEWAL_MARGIN = 60_000;

interface Kept {
  readonly token: string;
  readonly sid: string;
  /** Time of renewal. */
  readonly until: Instant;
  /** The signing key. After a key change, the token is renewed. */
  readonly key: KeyObject;
}

/** The agents `ext-<id>`, as which extensions act on their own. Each is created on first use. */
export class ExtensionAgents implements AgentPort {
  readonly #store: EventStore;
  readonly #indexes: LiveIndexes;
  readonly #clock: Clock;
  readonly #keys: Pick<TokenKeys, 'jwtKey'>;
  readonly #life: number;
  readonly #causation: Pick<Causation, 'depthAfter' | 'present'>;
  readonly #quotaParts: QuotaParts;
  readonly #signal: AbortSignal;
  readonly #tokens = new Map<string, Kept>();
  /** Pending requests: concurrent calls share one session. */
  readonly #asked = new Map<string, Promise<string>>();

  /** @param options.tokenSeconds lifetime of an access token */
  constructor(options: {
    readonly store: EventStore;
    readonly indexes: LiveIndexes;
    readonly clock: Clock;
    readonly keys: Pick<TokenKeys, 'jwtKey'>;
    readonly tokenSeconds: number;
    readonly causation: Pick<Causation, 'depthAfter' | 'present'>;
    readonly quotaParts: QuotaParts;
    readonly signal: AbortSignal;
  }) {
    this.#store = options.store;
    this.#indexes = options.indexes;
    this.#clock = options.clock;
    this.#keys = options.keys;
    this.#life = options.tokenSeconds;
    this.#causation = options.causation;
    this.#quotaParts = options.quotaParts;
    this.#signal = options.signal;
  }

  async idOf(extension: AgentExtension): Promise<string> {
    const id = agentIdOf(extension.id);
    await this.#agent(extension);
    return id;
  }

  async namespaceOf(agentId: string): Promise<string> {
    const { state } = await this.#indexes.agents.get(agentId);
    return requireAgent(state).namespace;
  }

  tokenOf(extension: AgentExtension): Promise<string> {
    const { id } = extension;
    let asked = this.#asked.get(id);
    if (asked === undefined) {
      asked = this.#countingToken(extension).finally(() => this.#asked.delete(id));
      this.#asked.set(id, asked);
    }
    return asked;
  }

  /** The cached token, or a new one if it is no longer valid. */
  async #countingToken(extension: AgentExtension): Promise<string> {
    const now = this.#clock.now();
    const sub = agentIdOf(extension.id);
    const kept = this.#tokens.get(extension.id);
    const current = kept?.key === this.#keys.jwtKey;
    if (kept !== undefined && current && kept.until > now && (await this.#counts(sub, kept))) {
      return kept.token;
    }
    const agent = await this.#agent(extension);
    const sid = newId(now);
    const life = this.#life * 1000;
    const until = now + life;
    const data = {
      agent_id: sub,
      refresh_id: newId(now),
      expires_at: toIso(until),
      credentials_revision: agent.sessions_revision,
    };
    const stream = streams.session(sid);
    const events = [{ type: 'SessionStarted', data }] as const;
    await this.#store.append(stream, toNewEvents(stream, events, this.#context(sub)), 'none');
    const claims = { sub, type: 'access', name: agent.name, sid, jti: newId(now) } as const;
    const scope = agent.scopes.join(' ');
    const key = this.#keys.jwtKey;
    const token = signToken({ ...claims, scope }, this.#life, now, key);
    this.#tokens.set(extension.id, {
      token,
      sid,
      until: until - Math.min(RENEWAL_MARGIN, life / 2),
      key,
    });
    return token;
  }

  /** An administrator can end its session. A new secret also ends it. */
  async #counts(sub: string, { sid }: Kept): Promise<boolean> {
    const { agents, sessions } = this.#indexes;
    const [{ state: agent }, { state: session }] = await Promise.all([
      agents.get(sub),
      sessions.get(sid),
    ]);
    return agent.status === 'registered' && isOpenFor(agent, session);
  }

  async requireEntryRoom(namespace: string, data: unknown): Promise<void> {
    await requireEventRoom(this.#quotaParts, namespace);
    await countPayload(this.#quotaParts, namespace, data);
  }

  async publish(extension: AgentExtension, topic: string, payload: object): Promise<string> {
    if (typeof topic !== 'string' || !isTopic(topic))
      throw badInput('topic', 'is not a valid topic');
    const { text, lost } = stringifyExactly(payload);
    rejectLostNumbers('data', lost);
    const json: unknown = JSON.parse(text ?? 'null');
    if (!isJsonObject(json)) throw badInput('data', 'must be an object');
    if (Buffer.byteLength(JSON.stringify(json)) > MAX_PUBLISHED_BYTES) {
      const details = { limit: MAX_PUBLISHED_BYTES };
      throw new ExtensionError('payload_too_large', 'the event is too large', details);
    }
    const agent = agentIdOf(extension.id);
    const { namespace } = await this.#agent(extension);
    const { topics } = this.#indexes;
    // A process that has just started does not know the listening tasks yet.
    await topics.passed(BEGINNING, this.#signal);
    const event = { topic, payload: json, source_agent_id: agent };
    const triggered = topics.matching(namespace, topic);
    const context = { ...this.#context(agent), depth: await this.#depth() };
    const published = await publishWithinQuotas(this.#quotaParts, { ...event, namespace }, () =>
      publishEvent(this.#store, event, triggered, context, namespace),
    );
    return published.event_id;
  }

  /** The depth of an event. @throws ExtensionError `conflict` beyond the limit; a step is not retried after it */
  async #depth(): Promise<number> {
    try {
      return await this.#causation.depthAfter(this.#causation.present, 'event');
    } catch (error) {
      if (!(error instanceof RefusalError)) throw error;
      const conflict = new ExtensionError('conflict', error.message, error.details);
      throw Object.assign(conflict, { retryable: false });
    }
  }

  /** @throws RefusalError if the agent was removed or disabled, because then the extension must not act */
  async #agent(extension: AgentExtension): Promise<RegisteredAgent> {
    const id = agentIdOf(extension.id);
    const { state } = await load(this.#store, streams.agent(id), agentFold);
    if (state.status !== 'none') return requireEnabled(state);
    const fields = { name: `ext-${extension.id}`, scopes: scopesOf(extension), webhook_url: null };
    // The same command id in every process, so that the agent is created once.
    const context = { ...this.#context('service'), commandId: nameBasedId('extension', id) };
    const handled = await registerAgentCommand(this.#store, id, fields, null, context);
    this.#indexes.agents.learn(id, handled);
    return requireAgent(handled.state);
  }

  #context(actor: string): CommandContext {
    const now = this.#clock.now();
    return {
      commandId: newId(now),
      actor,
      source: 'extension',
      correlationId: newId(now),
      now,
    };
  }
}

function agentIdOf(extensionId: string): string {
  return nameBasedId('extension agent', extensionId);
}
