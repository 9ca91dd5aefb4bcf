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

/** Headers that are answered. */
export const answeredHeaders = {
  'X-Request-Id': text("the request's id, also in the log"),
  'X-Event-Position': text("position of the command's last event"),
  'X-Read-Position': text('up to where the view is that was read'),
  'X-RateLimit-Limit': whole('requests that a window allows'),
  'X-RateLimit-Remaining': whole('requests that are left in it'),
  'X-RateLimit-Reset': whole('when it ends, in seconds since 1970'),
  'Idempotent-Replayed': text('the answer is one that was given before', { enum: ['true'] }),
  ETag: text("the resource's revision, for If-Match"),
  Location: text('path of what was made'),
  'X-Total-Count': whole('how many there are in all'),
  'Retry-After': whole('seconds after which to try again'),
  'WWW-Authenticate': text('how to authenticate'),
} satisfies Readonly<Record<string, JsonObject>>;

export type AnsweredHeader = keyof typeof answeredHeaders;

const limits = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const;

/** Headers of an endpoint's answers where nothing is wrong. */
export function headersOf(endpoint: DescribedEndpoint): JsonObject {
  const { reads, idempotent, answerHeaders = [], paths } = endpoint;
  return refsTo([
    'X-Request-Id',
    ...(paths[0].startsWith('/health') ? [] : limits),
    ...(reads === undefined ? [] : (['X-Read-Position'] as const)),
    ...(isCommand(endpoint) ? (['X-Event-Position'] as const) : []),
    ...(idempotent === true ? (['Idempotent-Replayed'] as const) : []),
    ...answerHeaders,
  ]);
}

/** Headers of an answer, each as a reference to its component. */
export function refsTo(names: readonly AnsweredHeader[]): JsonObject {
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

/** Headers that clients may send, by the name of their component. */
export const sentHeaders = {
  IdempotencyKey: sent(
    'Idempotency-Key',
    'the same key on the same path with the same body within 24 hours gives the first answer again',
    'import-4711',
    { minLength: 1, maxLength: 200 },
  ),
  IfMatch: sent('If-Match', 'the ETag seen, a list of them, or *; 412 when none matches', '"3"'),
  Reason: sent('X-Reason', 'why; recorded in the events', 'the shop is being updated', {
    maxLength: 500,
  }),
  RequestId: sent(
    'X-Request-Id',
    'id of the request, in place of a generated one',
    'nightly-import-1',
    {
      pattern: '^[A-Za-z0-9_.:-]{1,100}$',
    },
  ),
  Traceparent: sent(
    'traceparent',
    'W3C trace context; recorded in the events',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  ),
  LastEventId: sent(
    'Last-Event-ID',
    'the id that came last: the stream continues after it',
    '00000000000000001742',
  ),
} satisfies Readonly<Record<string, JsonObject>>;

/** The headers that an endpoint takes, each as a reference to its component. */
export function takenHeaders(endpoint: DescribedEndpoint, live: boolean): readonly JsonObject[] {
  const names: (keyof typeof sentHeaders)[] = ['RequestId'];
  if (isCommand(endpoint)) names.push('Reason', 'Traceparent');
  if (endpoint.idempotent === true) names.push('IdempotencyKey');
  if (endpoint.ifMatch === true) names.push('IfMatch');
  if (live) names.push('LastEventId');
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
}
