import type { Request } from 'express';
import { isJsonObject } from '../../domain/json.ts';
import { badRequest } from '../errors.ts';

const MAX_REASON_LENGTH = 500;

/** `X-Reason`, decoded as UTF-8 if that is valid, otherwise as Latin-1. @throws HttpError 400 when it is too long */
export function reasonOf(request: Request): string | undefined {
  const reason = reasonGiven(request);
  if (reason === undefined || [...reason].length <= MAX_REASON_LENGTH) return reason;
  const issue = `must have at most ${MAX_REASON_LENGTH} characters`;
  throw badRequest([{ field: 'X-Reason', issue }]);
}

/** The `reason` of a command's body; without one, `X-Reason`. @throws HttpError 400 when the header is too long */
export function reasonOfCommand(request: Request, body: unknown): string | undefined {
  const fallback = reasonOf(request);
  return reasonIn(body) ?? fallback;
}

function reasonIn(body: unknown): string | undefined {
  const reason = isJsonObject(body) ? body['reason'] : undefined;
  return typeof reason === 'string' && reason.trim() !== '' ? reason : undefined;
}

/** Like {@link reasonOfCommand}, but truncated: for the record of a refused request. */
export function recordedReason(request: Request, body: unknown): string | undefined {
  const reason = reasonIn(body) ?? reasonGiven(request);
  return reason === undefined ? undefined : [...reason].slice(0, MAX_REASON_LENGTH).join('');
}

function reasonGiven(request: Request): string | undefined {
  const header = request.headers['x-reason'];
  return typeof header !== 'string' || header === '' ? undefined : decoded(header);
}

/** A valid `traceparent` (W3C Trace Context), which the events carry. */
export function traceparentOf(request: Request): string | undefined {
  const header = request.headers.traceparent;
  return typeof header === 'string' &&
    /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(header)
    ? header
    : undefined;
}

function decoded(header: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(header, 'latin1'));
  } catch {
    return header;
  }
}
