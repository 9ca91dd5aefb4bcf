import { Type, type Static } from '@sinclair/typebox';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
export type Method = (typeof methods)[number];

const scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);
const statusPattern = Type.Union([
  Type.Integer({ minimum: 100, maximum: 599 }),
  /** `2xx` and the like. */
  Type.String({ pattern: '^[1-5](\\d\\d|xx)$' }),
]);

export const HttpArguments = Type.Object(
  {
    method: Type.Optional(
      Type.Unsafe<string>({
        type: 'string',
        enum: [...methods, ...methods.map((method) => method.toLowerCase())],
      }),
    ),
    /** http or https. */
    url: Type.String({ minLength: 1, maxLength: 8192 }),
    headers: Type.Optional(Type.Record(Type.String(), scalar)),
    /** Added to the URL's query; an array gives the name several times. */
    query: Type.Optional(Type.Record(Type.String(), Type.Union([scalar, Type.Array(scalar)]))),
    /** Text as it is; anything else as JSON. */
    body: Type.Optional(Type.Unknown()),
    expect_status: Type.Optional(
      Type.Union([statusPattern, Type.Array(statusPattern, { minItems: 1 })]),
    ),
  },
  { additionalProperties: false },
);
export type HttpArguments = Static<typeof HttpArguments>;
