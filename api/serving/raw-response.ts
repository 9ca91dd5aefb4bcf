import { newId } from '../../domain/ids.ts';
import { errorBody, errorStatuses, type HttpError } from '../errors.ts';

/** The reason phrases of responses that are written without a request. */
const reasons: Readonly<Record<number, string>> = {
  408: 'Request Timeout',
  413: 'Payload Too Large',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  503: 'Service Unavailable',
};

/** An error as a complete HTTP response, for a connection that is then closed. */
export function rawResponse(error: HttpError): string {
  const id = newId(Date.now());
  const body = JSON.stringify(errorBody(error, id));
  const status = errorStatuses[error.code];
  const lines = [
    `HTTP/1.1 ${status} ${reasons[status] ?? 'Bad Request'}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${id}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    ...Object.entries(error.headers).map(([name, value]) => `${name}: ${value}`),
    'Connection: close',
  ];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}
