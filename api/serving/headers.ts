import type { Request } from 'express';
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

/** As {@link reasonOf}, cut where it is too long: for the record of a request that is refused anyway. */
export function reasonForTheRecord(request: Request): string | undefined {
  return cut(reasonGiven(request));
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
