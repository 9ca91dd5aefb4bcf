import type { NextFunction, Request, Response } from 'express';
import { badRequest } from '../errors.ts';

/** `Host = uri-host [ ":" port ]` (RFC 9110 section 7.2), which may be empty; `uri-host` as RFC 3986 section 3.2.2. */
const HOST =
  /^(?:\[(?:[\da-f:.]+|v[\da-f]+\.[\w.~!$&'()*+,;=:-]+)\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::\d*)?$/i;

/**
 * Rejects a request whose host is ambiguous (RFC 9112 section 3.2): without a `Host` in HTTP/1.1, with several, or with
 * an invalid one. Otherwise, a proxy might check another host than the one that is served.
 */
export function checkHost(request: Request, _response: Response, next: NextFunction): void {
  const issue = issueOf(request);
  next(issue === null ? undefined : badRequest([{ field: 'Host', issue }]));
}

function issueOf({ rawHeaders, headers: { host }, httpVersion }: Request): string | null {
  if (host === undefined) return httpVersion === '1.0' ? null : 'is required';
  // `headers` contains only the first one.
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  if (count > 1) return 'must be sent once';
  return HOST.test(host) ? null : 'must be a host name or an address, with or without a port';
}
