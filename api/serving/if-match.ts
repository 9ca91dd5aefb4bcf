import type { Request } from 'express';
import { RefusalError } from '../../domain/errors.ts';
import type { SeenRevision } from '../../domain/handle.ts';
import { HttpError, badRequest } from '../errors.ts';

/** The parsed header `If-Match`. */
export interface IfMatch {
  /** Revisions that the caller accepts; an empty list when no tag is a revision. */
  readonly seen: SeenRevision;
  /** For `details.expected`: revisions as numbers, other tags as sent; a list if there are several. */
  readonly sent: Sent | readonly Sent[];
}
type Sent = number | string;

/**
 * The service's entity tag is a revision. A proxy that compresses a response marks the tag, as Apache (`"3-gzip"`),
 * Jetty (`"3--gzip"`) and nginx (`W/"3"`) do, but the tag still names the same revision. So a weak tag counts too,
 * although RFC 9110, section 13.1.1, compares strongly.
 */
const REVISION_TAG =
  /^(?:W\/)?"(0|[1-9]\d{0,14})(?:(?:--?|;)(?:x-)?(?:gzip|br|zstd|deflate|compress))*"$/;

/** An entity tag (RFC 9110, section 8.8.3), or a revision without quotes, followed by a comma or the end. */
const ELEMENT = /[ \t]*(?:((?:W\/)?"[^"]*"|\d{1,15})[ \t]*)?(?:,|$)/y;

/**
 * Reads `If-Match` (RFC 9110, section 13.1.1).
 * @returns undefined without the header, and for `*`, which matches any existing object
 * @throws HttpError 400 for a value that is neither `*` nor a list of entity tags
 */
export function ifMatchOf({ headers }: Pick<Request, 'headers'>): IfMatch | undefined {
  const header = headers['if-match']?.trim();
  if (header === undefined || header === '*') return undefined;
  const sent: Sent[] = [];
  ELEMENT.lastIndex = 0;
  while (ELEMENT.lastIndex < header.length) {
    const element = ELEMENT.exec(header);
    if (element === null) throw malformed();
    // Empty elements are skipped (section 5.6.1).
    if (element[1] !== undefined) sent.push(revisionOf(element[1]) ?? element[1]);
  }
  const [first, ...others] = sent;
  if (first === undefined) throw malformed();
  const seen = sent.filter((each) => typeof each === 'number');
  if (others.length > 0) return { seen, sent };
  return { seen: seen[0] ?? [], sent: first };
}

/** Runs a command. Its refusal contains the revisions that the caller sent. @throws HttpError 412; what `run` throws */
export async function withIfMatch<T>(ifMatch: IfMatch, run: () => Promise<T> | T): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof RefusalError) || error.code !== 'REVISION_MISMATCH') throw error;
    const details = { ...error.details, expected: ifMatch.sent };
    throw new HttpError('precondition_failed', error.message, details);
  }
}

function revisionOf(tag: string): number | undefined {
  const digits = /^\d+$/.test(tag) ? tag : REVISION_TAG.exec(tag)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

const malformed = (): HttpError =>
  badRequest([{ field: 'If-Match', issue: 'must be *, or entity tags separated by commas' }]);
