import { Type, type Static } from '@sinclair/typebox';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
export type Method = (typeof methods)[number];

/** Marks arguments that may contain secrets. */
const secret = { 'x-secret': true } as const;

const scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);
const statusPattern = Type.Union([
  Type.Integer({ minimum: 100, maximum: 599 }),
  Type.String({
    pattern: '^[1-5](\\d\\d|xx)$',
    description: 'a status such as 204, or a class of them such as 2xx',
  }),
]);

export const HttpArguments = Type.Object(
  {
    method: Type.Optional(
      Type.Unsafe<string>({
        type: 'string',
        enum: [...methods, ...methods.map((method) => method.toLowerCase())],
        default: 'GET',
        description: 'the method, in upper or lower case',
      }),
    ),
    url: Type.String({
      minLength: 1,
      maxLength: 8192,
      description: 'an http or https URL',
      ...secret,
    }),
    headers: Type.Optional(
      Type.Record(Type.String(), scalar, {
        description: 'headers of the request, by name',
        ...secret,
      }),
    ),
    query: Type.Optional(
      Type.Record(Type.String(), Type.Union([scalar, Type.Array(scalar)]), {
        description: 'added to the query of the URL; an array repeats its name',
        ...secret,
      }),
    ),
    body: Type.Optional(
      Type.Unknown({
        description: 'a string is sent as it is, any other value as JSON',
        ...secret,
      }),
    ),
    expect_status: Type.Optional(
      Type.Union([statusPattern, Type.Array(statusPattern, { minItems: 1 })], {
        default: '2xx',
        description: 'the status, or the statuses, that count as success',
      }),
    ),
  },
  { additionalProperties: false },
);
export type HttpArguments = Static<typeof HttpArguments>;
