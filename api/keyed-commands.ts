import type { Request } from 'express';
import type { Clock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import { HttpError, type ErrorCode } from './errors.ts';
import { requestIdOf } from './serving/answer-headers.ts';
import { reasonOf, traceparentOf } from './serving/headers.ts';
import { checkKey, type IdempotencyKeys } from './serving/idempotency.ts';

/** Commands of those who answer requests without being of the interface, which a key makes one as it does its own. */
export class KeyedCommands {
  readonly #keys: IdempotencyKeys;
  readonly #clock: Clock;

  constructor(keys: IdempotencyKeys, clock: Clock) {
    this.#keys = keys;
    this.#clock = clock;
  }

  /**
   * @param carryOut gets the id of the command that the request's key stands for; null without one
   * @returns what `carryOut` gave, or gave the first time
   * @throws HttpError 400 for a malformed key, 409 as the interface does, and what was refused the first time
   */
  async once<T>(
    request: Request,
    agentId: string,
    carryOut: (commandId: string | null) => Promise<T>,
  ): Promise<T> {
    const key = checkKey(request.get('idempotency-key'));
    if (key === undefined) return carryOut(null);
    const { method, originalUrl: path, body, res: response } = request;
    const now = this.#clock.now();
    const context = {
      commandId: newId(now),
      actor: agentId,
      source: request.ip ?? '',
      correlationId: response === undefined ? newId(now) : requestIdOf(response),
      reason: reasonOf(request),
      traceparent: traceparentOf(request),
      now,
    };
    const keyed = { agentId, key, method, path, body: body as unknown };
    const answer = await this.#keys.once(keyed, context, async (commandId) => {
      const given = await carryOut(commandId);
      // Of what was written on the way: a repetition tells it again.
      const position = response?.getHeader('X-Event-Position');
      return { body: given, position: typeof position === 'string' ? position : null };
    });
    if ((answer.status ?? 200) >= 400) throw refusedBefore(answer.body, answer.headers);
    for (const [name, value] of Object.entries(answer.headers ?? {})) {
      response?.setHeader(name, value);
    }
    // JSON, as it was given.
    return answer.body as T;
  }
}

/** A refusal that is told again. */
function refusedBefore(body: unknown, headers: Readonly<Record<string, string>> = {}): HttpError {
  const { error, message, details } = body as {
    readonly error: ErrorCode;
    readonly message: string;
    readonly details: Readonly<Record<string, unknown>>;
  };
  return new HttpError(error, message, details, headers);
}
