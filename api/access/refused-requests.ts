import type { Request } from 'express';
import { isJsonObject } from '../../domain/json.ts';
import { namespaceOfEvent } from '../../domain/events/metadata.ts';
import type { CommandContext } from '../../domain/handle.ts';
import { isApiKey } from '../../domain/agents/api-key.ts';
import { isUuid, newId } from '../../domain/ids.ts';
import { DEFAULT_NAMESPACE } from '../../domain/namespaces/namespace.ts';
import { streams } from '../../domain/streams.ts';
import type { Authentication } from './authentication.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { OAuthError, errorStatuses, toHttpError, type ErrorCode } from '../errors.ts';
import { ANONYMOUS } from '../endpoint.ts';
import { recordedReason } from '../serving/headers.ts';
import { holdsToken, shownPath } from '../serving/shown-path.ts';
import { KeyAuthentication } from './key-authentication.ts';
import type { Refused } from './refusals.ts';
import { SignInRefusedError } from '../people/sign-in-refused-error.ts';
import { verifyAnyToken } from './tokens.ts';

/** Statuses of refusals that are recorded. */
const recordedStatuses: ReadonlySet<number> = new Set([401, 403, 409, 412]);

/** A request that was refused. */
export interface RefusedRequest {
  readonly request: Request;
  /** Method and path as the interface's description writes them. */
  readonly action: string;
  /** Its body, if it was read. */
  readonly body: unknown;
  /** Its id. */
  readonly id: string;
}

/** Records the refusals of known agents. */
export class RefusedRequests {
  readonly #dependencies: ApiDependencies;
  readonly #authentication: Authentication;
  readonly #keys: KeyAuthentication;

  constructor(dependencies: ApiDependencies, authentication: Authentication) {
    this.#dependencies = dependencies;
    this.#authentication = authentication;
    this.#keys = new KeyAuthentication(dependencies);
  }

  /** Records a request that failed with an error. */
  thrown(error: unknown, refused: RefusedRequest): void {
    const { code, details } = toHttpError(error);
    const status = errorStatuses[code];
    if (error instanceof SignInRefusedError) {
      const agentId = error.agentId ?? ANONYMOUS;
      this.#record(status, code, refused, Promise.resolve(agentId), undefined, error.recorded);
    } else if (!(error instanceof OAuthError)) this.#note(status, code, refused, stepIn(details));
    else if (error.oauthCode === 'invalid_client' || error.oauthCode === 'invalid_grant') {
      this.#record(status, error.oauthCode, refused, this.#claimedAgent(refused.body));
    }
  }

  /** Records a request whose response was the recorded error of its Idempotency-Key. */
  replayed(body: unknown, refused: RefusedRequest): void {
    const code = isJsonObject(body) ? body['error'] : undefined;
    if (isErrorCode(code)) this.#note(errorStatuses[code], code, refused);
  }

  #note(status: number, code: ErrorCode, refused: RefusedRequest, step?: Refused['step']): void {
    if (!recordedStatuses.has(status)) return;
    this.#record(status, code, refused, this.#agentOf(status, refused), step);
  }

  #record(
    status: number,
    code: string,
    refused: RefusedRequest,
    agent: Promise<string | null>,
    step?: Refused['step'],
    reason?: string,
  ): void {
    const now = this.#dependencies.clock.now();
    const noting = async (): Promise<void> => {
      // A callback that came too late has no agent, but a step.
      const agentId = (await agent) ?? (step === undefined ? null : ANONYMOUS);
      if (agentId === null) return;
      const { action, request } = refused;
      const path = shownPath(request);
      const namespace = await this.#namespaceOf(agentId, step);
      const context = { ...contextOf(agentId, refused, now), namespace, ...(reason && { reason }) };
      this.#dependencies.refusals.note({ agentId, action, path, status, code, step, context });
    };
    noting().catch((error: unknown) => {
      const { failures } = this.#dependencies.telemetry;
      failures.failed('could not identify the agent of a refused request', error);
    });
  }

  /** The namespace of the agent; for a callback, the namespace of the step's run. */
  async #namespaceOf(agentId: string, step: Refused['step']): Promise<string> {
    const { agents, store } = this.#dependencies;
    if (agentId === ANONYMOUS) {
      if (step === undefined) return DEFAULT_NAMESPACE;
      const [first] = await store.readStream(streams.run(step.run_id), { limit: 1 });
      return first === undefined ? DEFAULT_NAMESPACE : namespaceOfEvent(first);
    }
    const { state } = await agents.get(agentId);
    return 'namespace' in state ? state.namespace : DEFAULT_NAMESPACE;
  }

  /**
   * The agent of the token, even if the token is invalid. Without a token, the agent that the request claims to be
   * from.
   */
  async #agentOf(status: number, { request, body }: RefusedRequest): Promise<string | null> {
    if (status !== 401) {
      const caller = await this.#authentication.callerOf(request);
      return caller?.agentId ?? null;
    }
    const fields = isJsonObject(body) ? body : {};
    const bearer = /^bearer +([^ ]+) *$/i.exec(request.headers.authorization ?? '')?.[1];
    for (const token of [bearer, fields['refresh_token']]) {
      if (typeof token !== 'string') continue;
      if (isApiKey(token)) return this.#keys.agentOf(token);
      const claims = verifyAnyToken(token, this.#dependencies.settings.tokenKeys);
      if (claims !== null) return this.#known(claims.sub);
    }
    return this.#claimedAgent(body);
  }

  async #claimedAgent(body: unknown): Promise<string | null> {
    const fields = isJsonObject(body) ? body : {};
    const named = fields['agent_id'] ?? fields['client_id'];
    return typeof named === 'string' && isUuid(named) ? this.#known(named.toLowerCase()) : null;
  }

  async #known(agentId: string): Promise<string | null> {
    const { state } = await this.#dependencies.agents.get(agentId);
    return state.status === 'registered' || state.status === 'removed' ? agentId : null;
  }
}

/** The step that an error's details name. */
function stepIn({ run_id, step }: Readonly<Record<string, unknown>>): Refused['step'] {
  return typeof run_id === 'string' && typeof step === 'string' ? { run_id, step } : undefined;
}

const isErrorCode = (code: unknown): code is ErrorCode =>
  typeof code === 'string' && Object.hasOwn(errorStatuses, code);

function contextOf(
  agentId: string,
  { request, body, id }: RefusedRequest,
  now: number,
): CommandContext {
  return {
    commandId: newId(now),
    actor: agentId,
    source: request.ip ?? '',
    correlationId: id,
    // The reason is left out, because it may contain the token or a secret of the run, which cannot
    // be masked here.
    reason: holdsToken(request) ? undefined : recordedReason(request, body),
    now,
  };
}
