import { createHash } from 'node:crypto';
import type { Request } from 'express';
import type { RegisteredAgent } from '../../domain/agents/agent.ts';
import type { Instant } from '../../domain/clock.ts';
import { isUuid } from '../../domain/ids.ts';
import { agentBySecret } from './agent-secret.ts';
import type { Authentication } from './authentication.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { Caller } from '../endpoint.ts';
import { DISABLED, HttpError } from '../errors.ts';
import { limitFailures } from './token-brake.ts';

/** Makes a browser ask for the id and the secret. */
const CHALLENGE = 'Basic realm="Task scheduling service", charset="UTF-8", Bearer';

/** How long a verified secret is remembered, as a page has many files. Milliseconds. */
const REMEMBERED_FOR = 60_000;

/** Headers that are remembered. */
const MAX_REMEMBERED = 1000;

/** The agent for which a page of a list was made. */
export type Visitor = Pick<Caller, 'agentId' | 'namespace' | 'name' | 'scopes' | 'admin'>;

interface Remembered {
  readonly agentId: string;
  /** The agent's `sessions_revision`: a new secret and a disabling invalidate it. */
  readonly revision: number | null;
  readonly until: Instant;
}

/**
 * Authenticates browsers at closed pages by HTTP Basic (RFC 7617), with an agent's id and secret. Only reads may be
 * guarded like this, because browsers send the credentials with requests from any page.
 */
export class PageAccess {
  readonly #dependencies: ApiDependencies;
  readonly #authentication: Authentication;
  /** By the header's hash, so that no secret stays in memory. */
  readonly #remembered = new Map<string, Remembered>();

  constructor(dependencies: ApiDependencies, authentication: Authentication) {
    this.#dependencies = dependencies;
    this.#authentication = authentication;
  }

  /** @throws HttpError 401 with the challenge, 429 for too many wrong secrets */
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
    const known = await this.#recall(key);
    if (known !== null) return known;
    const credentials = Buffer.from(basic, 'base64').toString();
    const colon = credentials.indexOf(':');
    const agentId = credentials.slice(0, Math.max(0, colon)).toLowerCase();
    if (!isUuid(agentId)) {
      throw refused("the name must be an agent's id, and the password its secret");
    }
    const secret = credentials.slice(colon + 1);
    const agent = await limitFailures(this.#dependencies, { agentId, address }, (network) =>
      agentBySecret(this.#dependencies, agentId, secret === '' ? undefined : secret, network),
    );
    if (agent === null) throw refused('the agent is unknown, or the secret is wrong');
    if (agent.disabled !== null) throw refused(DISABLED);
    this.#remember(key, agentId, agent);
    return visitorOf(agentId, agent);
  }

  async #recall(key: string): Promise<Visitor | null> {
    const known = this.#remembered.get(key);
    if (known === undefined) return null;
    const { agents, clock } = this.#dependencies;
    const { state } = await agents.get(known.agentId);
    const isValid =
      known.until > clock.now() &&
      state.status === 'registered' &&
      state.disabled === null &&
      state.sessions_revision === known.revision;
    if (isValid) return visitorOf(known.agentId, state);
    this.#remembered.delete(key);
    return null;
  }

  #remember(key: string, agentId: string, { sessions_revision: revision }: RegisteredAgent): void {
    const until = this.#dependencies.clock.now() + REMEMBERED_FOR;
    this.#remembered.set(key, { agentId, revision, until });
    const [oldest] = this.#remembered.keys();
    const isFull = this.#remembered.size > MAX_REMEMBERED;
    if (isFull && oldest !== undefined) this.#remembered.delete(oldest);
  }
}

function visitorOf(agentId: string, { namespace, name, scopes }: RegisteredAgent): Visitor {
  return { agentId, namespace, name, scopes, admin: scopes.includes('admin') };
}

function refused(message: string): HttpError {
  const details = { required_scopes: [] };
  return new HttpError('unauthorized', message, details, { 'WWW-Authenticate': CHALLENGE });
}
