import type { Request } from 'express';
import { isJsonObject } from '../../domain/json.ts';
import { badRequest } from '../errors.ts';

const LONGEST_REASON = 500;

/**
 * `X-Reason`: why, in the caller's words. Headers are bytes: text that is UTF-8 counts as that, other as Latin-1.
 * @throws HttpError 400 when it is too long
 */
export function reasonOf(request: Request): string | undefined {
  const reason = reasonGiven(request);
  if (reason === undefined || [...reason].length <= LONGEST_REASON) return reason;
  throw badRequest([
    { field: 'X-Reason', issue: `must have at most ${LONGEST_REASON} characters` },
  ]);
}

/**
 * Why a command is given: the `reason` of its body, which is about this command alone, before `X-Reason`, which a
 * client may send with all.
 * @param body as it was checked, of a command whose body may have a reason
 * @throws HttpError 400 when the header is too long
 */
export function reasonOfCommand(request: Request, body: unknown): string | undefined {
  const ofAll = reasonOf(request);
  return reasonIn(body) ?? ofAll;
}

function reasonIn(body: unknown): string | undefined {
  const reason = isJsonObject(body) ? body['reason'] : undefined;
  return typeof reason === 'string' && reason.trim() !== '' ? reason : undefined;
}

/** As {@link reasonOf}, cut where it is too long: for the record of a request that is refused anyway. */
export function reasonForTheRecord(request: Request, body: unknown): string | undefined {
  return cut(reasonIn(body) ?? reasonGiven(request));
}

/** In characters and not in UTF-16 units: half of a pair of surrogates says nothing. */
const cut = (reason: string | undefined): string | undefined =>
  reason === undefined ? undefined : [...reason].slice(0, LONGEST_REASON).join('');

function reasonGiven(request: Request): string | undefined {
  const header = request.headers['x-reason'];
  return typeof header !== 'string' || header === '' ? undefined : textOf(header);
}

/** `traceparent` where it is one (W3C Trace Context); it goes into the events. */
export function traceparentOf(request: Request): string | undefined {
  const header = request.headers.traceparent;
  return typeof header === 'string' &&
    /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(header)
    ? header
    : undefined;
}

function textOf(header: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(header, 'latin1'));
  } catch {
    return header;
  }
}
