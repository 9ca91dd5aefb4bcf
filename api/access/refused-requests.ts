import type { Request } from 'express';
import { isJsonObject } from '../../domain/json.ts';
import type { CommandContext } from '../../domain/handle.ts';
import { isUuid, newId } from '../../domain/ids.ts';
import type { Instant } from '../../domain/clock.ts';
import type { Authentication } from './authentication.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { OAuthError, errorStatuses, toHttpError, type ErrorCode } from '../errors.ts';
import { reasonForTheRecord } from '../serving/headers.ts';
import { verifyAnyToken } from './tokens.ts';

/** The statuses that say that something was not allowed, or not possible as things stand. */
const recorded: ReadonlySet<number> = new Set([401, 403, 409, 412]);

/** A request that has failed, and what was known of it by then. */
export interface Failed {
  readonly request: Request;
  /** Method and path as the interface's description writes it. */
  readonly action: string;
  /** The body, where it was read. */
  readonly body: unknown;
  readonly now: Instant;
  /** Of the request. */
  readonly id: string;
}

/** Sees to it that refusals of known agents are recorded. */
export class RefusedRequests {
  readonly #dependencies: ApiDependencies;
  readonly #authentication: Authentication;

  constructor(dependencies: ApiDependencies, authentication: Authentication) {
    this.#dependencies = dependencies;
    this.#authentication = authentication;
  }

  /** A request that was answered by throwing. */
  thrown(error: unknown, failed: Failed): void {
    const { code } = toHttpError(error);
    const status = errorStatuses[code];
    if (!(error instanceof OAuthError)) this.#note(status, code, failed);
    else if (error.oauthCode === 'invalid_client' || error.oauthCode === 'invalid_grant') {
      this.#record(status, error.oauthCode, failed, this.#named(failed.body));
    }
  }

  /** A request that was answered with an error body, from the memory of its Idempotency-Key. */
  answered(body: unknown, failed: Failed): void {
    const code = isJsonObject(body) ? body['error'] : undefined;
    if (isErrorCode(code)) this.#note(errorStatuses[code], code, failed);
  }

  #note(status: number, code: ErrorCode, failed: Failed): void {
    if (recorded.has(status)) this.#record(status, code, failed, this.#whose(status, failed));
  }

  #record(status: number, code: string, failed: Failed, whose: Promise<string | null>): void {
    const { request, action } = failed;
    void whose.then(
      (agentId) => {
        if (agentId === null) return;
        const { path } = request;
        const context = contextOf(agentId, failed);
        this.#dependencies.refusals.note({ agentId, action, path, status, code, context });
      },
      (error: unknown) => {
        const { log } = this.#dependencies.telemetry;
        log.warn('it could not be found out whose request was refused', { error });
      },
    );
  }

  /** Who was refused: by its token, also one that counts no longer; else who the request says it is. */
  async #whose(status: number, { request, body }: Failed): Promise<string | null> {
    if (status !== 401) {
      const caller = await this.#authentication.callerOf(request);
      return caller?.agentId ?? null;
    }
    const fields = isJsonObject(body) ? body : {};
    const bearer = /^bearer +([^ ]+) *$/i.exec(request.headers.authorization ?? '')?.[1];
    for (const token of [bearer, fields['refresh_token']]) {
      if (typeof token !== 'string') continue;
      const claims = verifyAnyToken(token, this.#dependencies.settings.tokenKeys);
      if (claims !== null) return this.#known(claims.sub);
    }
    return this.#named(body);
  }

  /** Who a body says that it is from. */
  async #named(body: unknown): Promise<string | null> {
    const fields = isJsonObject(body) ? body : {};
    const named = fields['agent_id'] ?? fields['client_id'];
    return typeof named === 'string' && isUuid(named) ? this.#known(named.toLowerCase()) : null;
  }

  async #known(agentId: string): Promise<string | null> {
    const { state } = await this.#dependencies.agents.get(agentId);
    return state.status === 'registered' || state.status === 'removed' ? agentId : null;
  }
}

const isErrorCode = (code: unknown): code is ErrorCode =>
  typeof code === 'string' && Object.hasOwn(errorStatuses, code);

function contextOf(agentId: string, { request, body, now, id }: Failed): CommandContext {
  return {
    commandId: newId(now),
    actor: agentId,
    source: request.ip ?? '',
    correlationId: id,
    reason: reasonForTheRecord(request, body),
    now,
  };
}
