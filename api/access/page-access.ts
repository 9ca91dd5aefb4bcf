import { createHash } from 'node:crypto';
import type { Request } from 'express';
import type { RegisteredAgent } from '../../domain/agents/agent.ts';
import type { Instant } from '../../domain/clock.ts';
import { isUuid } from '../../domain/ids.ts';
import { agentBySecret } from './agent-secret.ts';
import type { Authentication } from './authentication.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { Caller } from '../endpoint.ts';
import { HttpError } from '../errors.ts';
import { braked } from './token-brake.ts';

/** What a browser shows when it asks for the id and the secret. */
const CHALLENGE = 'Basic realm="Task scheduling service", charset="UTF-8", Bearer';

/** For how long a secret that was right is not looked at again: a page has many files. Milliseconds. */
const KEPT_FOR = 60_000;

/** Headers that are remembered at a time. */
const MOST_KEPT = 1000;

/** Who looks at a page. */
export type Visitor = Pick<Caller, 'agentId' | 'name' | 'scopes' | 'admin'>;

interface Kept {
  readonly agentId: string;
  /** Of the credentials: a new secret ends it. */
  readonly revision: number | null;
  readonly until: Instant;
}

/**
 * Lets browsers to pages that are closed: they know no bearer tokens where an address is typed, but ask people for a
 * name and a password (RFC 7617), which are an agent's id and secret. Only what is read and changes nothing may be
 * guarded so, as browsers send them along by themselves, whichever page the request comes from.
 */
export class PageAccess {
  readonly #dependencies: ApiDependencies;
  readonly #authentication: Authentication;
  /** By a hash of the header, so that no secret stays in memory. */
  readonly #kept = new Map<string, Kept>();

  constructor(dependencies: ApiDependencies, authentication: Authentication) {
    this.#dependencies = dependencies;
    this.#authentication = authentication;
  }

  /** @throws HttpError 401 with the challenge; 429 for too many wrong secrets */
  async authenticate(request: Request): Promise<Visitor> {
    const { authorization = '' } = request.headers;
    const basic = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(authorization)?.[1];
    if (basic !== undefined) return this.#byHeader(basic, request.ip ?? '');
    try {
      return await this.#authentication.authenticate(request, []);
    } catch (error) {
      if (error instanceof HttpError && error.code === 'unauthorized') {
        throw refused(error.message);
      }
      throw error;
    }
  }

  async #byHeader(basic: string, address: string): Promise<Visitor> {
    const key = createHash('sha256').update(basic).digest('base64url');
    const known = await this.#known(key);
    if (known !== null) return known;
    const text = Buffer.from(basic, 'base64').toString();
    const colon = text.indexOf(':');
    const agentId = text.slice(0, Math.max(0, colon)).toLowerCase();
    if (!isUuid(agentId)) throw refused("the name is an agent's id, the password its secret");
    const secret = text.slice(colon + 1);
    const agent = await braked(this.#dependencies, { agentId, address }, (network) =>
      agentBySecret(this.#dependencies, agentId, secret === '' ? undefined : secret, network),
    );
    if (agent === null) throw refused('the agent is unknown, or the secret is wrong');
    this.#keep(key, agentId, agent);
    return visitor(agentId, agent);
  }

  async #known(key: string): Promise<Visitor | null> {
    const kept = this.#kept.get(key);
    if (kept === undefined) return null;
    const { agents, clock } = this.#dependencies;
    const { state } = await agents.get(kept.agentId);
    const counts =
      kept.until > clock.now() &&
      state.status === 'registered' &&
      (state.credentials?.revision ?? null) === kept.revision;
    if (counts) return visitor(kept.agentId, state);
    this.#kept.delete(key);
    return null;
  }

  #keep(key: string, agentId: string, { credentials }: RegisteredAgent): void {
    const until = this.#dependencies.clock.now() + KEPT_FOR;
    this.#kept.set(key, { agentId, revision: credentials?.revision ?? null, until });
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MOST_KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }
}

function visitor(agentId: string, { name, scopes }: RegisteredAgent): Visitor {
  return { agentId, name, scopes, admin: scopes.includes('admin') };
}

function refused(message: string): HttpError {
  const details = { required_scopes: [] };
  return new HttpError('unauthorized', message, details, { 'WWW-Authenticate': CHALLENGE });
}
