import type { JsonObject } from '../../domain/json.ts';
import { isCommand, type DescribedEndpoint } from './endpoint-outcomes.ts';

const text = (description: string, more: JsonObject = {}): JsonObject => ({
  description,
  schema: { type: 'string', ...more },
});

const whole = (description: string): JsonObject => ({
  description,
  schema: { type: 'integer', minimum: 0 },
});

/** Response headers. */
export const responseHeaders = {
  'X-Request-Id': text("the request's id, also in the log"),
  'X-Event-Position': text("position of the command's last event"),
  'X-Read-Position': text('position up to which the view had been updated'),
  'X-RateLimit-Limit': whole('requests allowed in a window'),
  'X-RateLimit-Remaining': whole('requests left in the window'),
  'X-RateLimit-Reset': whole('end of the window, in seconds since 1970'),
  'Idempotent-Replayed': text('true: the stored response of the first request', { enum: ['true'] }),
  ETag: text("the resource's revision, for If-Match"),
  Location: text('path of the created resource, or the target of a redirect'),
  'X-Total-Count': whole('total number of items'),
  'Retry-After': whole('seconds to wait before trying again'),
  'WWW-Authenticate': text('how to authenticate'),
} satisfies Readonly<Record<string, JsonObject>>;

export type ResponseHeader = keyof typeof responseHeaders;

const limits = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const;

/** Headers of an endpoint's successful responses. */
export function headersOf(endpoint: DescribedEndpoint): JsonObject {
  const { reads, idempotent, responseHeaders: answerHeaders = [], paths } = endpoint;
  return refsTo([
    'X-Request-Id',
    ...(paths[0].startsWith('/health') ? [] : limits),
    ...(reads === undefined ? [] : (['X-Read-Position'] as const)),
    ...(isCommand(endpoint) ? (['X-Event-Position'] as const) : []),
    ...(idempotent === true ? (['Idempotent-Replayed'] as const) : []),
    ...answerHeaders,
  ]);
}

/** Response headers, each as a reference to its component. */
export function refsTo(names: readonly ResponseHeader[]): JsonObject {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const sent = (
  name: string,
  description: string,
  example: string,
  schema: JsonObject = {},
): JsonObject => ({
  name,
  in: 'header',
  required: false,
  description,
  example,
  schema: { type: 'string', ...schema },
});

/** Request headers, by the name of their component. */
export const requestHeaderComponents = {
  IdempotencyKey: sent(
    'Idempotency-Key',
    'a repetition with the same key, path and body within 24 hours returns the first response again',
    'import-4711',
    { minLength: 1, maxLength: 200 },
  ),
  IfMatch: sent('If-Match', 'an ETag, a list of ETags, or *; 412 if none matches', '"3"'),
  Reason: sent('X-Reason', 'why; recorded in the events', 'the shop is being updated', {
    maxLength: 500,
  }),
  RequestId: sent('X-Request-Id', 'id of the request; generated if absent', 'nightly-import-1', {
    pattern: '^[A-Za-z0-9_.:-]{1,100}$',
  }),
  Traceparent: sent(
    'traceparent',
    'W3C trace context; recorded in the events',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  ),
  LastEventId: sent(
    'Last-Event-ID',
    'id of the last message; the stream continues after it',
    '00000000000000001742',
  ),
} satisfies Readonly<Record<string, JsonObject>>;

/** The request headers of an endpoint, each as a reference to its component. */
export function requestHeaders(endpoint: DescribedEndpoint, live: boolean): readonly JsonObject[] {
  const names: (keyof typeof requestHeaderComponents)[] = ['RequestId'];
  if (isCommand(endpoint)) names.push('Reason', 'Traceparent');
  if (endpoint.idempotent === true) names.push('IdempotencyKey');
  if (endpoint.ifMatch === true) names.push('IfMatch');
  if (live) names.push('LastEventId');
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
}
