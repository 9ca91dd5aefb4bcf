import type { Request } from 'express';
import type { Clock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import { HttpError, type ErrorCode } from './errors.ts';
import { requestIdOf } from './serving/response-headers.ts';
import { reasonOf, traceparentOf } from './serving/headers.ts';
import { checkKey, type IdempotencyKeys } from './serving/idempotency.ts';

/** Runs commands of extensions once for their Idempotency-Key. */
export class KeyedCommands {
  readonly #keys: IdempotencyKeys;
  readonly #clock: Clock;

  constructor(keys: IdempotencyKeys, clock: Clock) {
    this.#keys = keys;
    this.#clock = clock;
  }

  /**
   * @param run receives the id of the command that the key stands for; null without a key
   * @returns the value that `run` returned, now or the first time
   * @throws HttpError 400 for a malformed key, 409 as the interface does, and the refusal of the first time
   */
  async once<T>(
    request: Request,
    agentId: string,
    run: (commandId: string | null) => Promise<T>,
  ): Promise<T> {
    const key = checkKey(request.get('idempotency-key'));
    if (key === undefined) return run(null);
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
    const result = await this.#keys.once(keyed, context, async (commandId) => {
      const result = await run(commandId);
      // The position of the events appended in the meantime is replayed too.
      const position = response?.getHeader('X-Event-Position');
      return { body: result, position: typeof position === 'string' ? position : null };
    });
    if ((result.status ?? 200) >= 400) throw replayedRefusal(result.body, result.headers);
    for (const [name, value] of Object.entries(result.headers ?? {})) {
      response?.setHeader(name, value);
    }
    // The JSON value that `run` returned.
    return result.body as T;
  }
}

function replayedRefusal(body: unknown, headers: Readonly<Record<string, string>> = {}): HttpError {
  const { error, message, details } = body as {
    readonly error: ErrorCode;
    readonly message: string;
    readonly details: Readonly<Record<string, unknown>>;
  };
  return new HttpError(error, message, details, headers);
}
