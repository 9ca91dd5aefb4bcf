import { Type, type Static, type TProperties, type TSchema } from '@sinclair/typebox';

/** A UUID in lower case. */
export const Id = Type.String({ minLength: 1, maxLength: 64 });

/** A timestamp as the service writes it. */
export const Timestamp = Type.String({ minLength: 20, maxLength: 32 });

/** null if it is not set. */
export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** An object with these fields and no others. */
export const closed = <T extends TProperties>(properties: T) =>
  Type.Object(properties, { additionalProperties: false });

/** The namespace of a stream, in its first event; left out in `default`. */
export const Namespace = Type.Optional(Type.String({ maxLength: 63 }));

/** An event type: the fields of its data, and the version of that schema. */
export const event = <T extends TProperties>(fields: T, version = 1) => ({
  version,
  schema: closed(fields),
});

/** Any JSON object. */
export const AnyObject = Type.Record(Type.String(), Type.Unknown());

/** A schema with the value that applies where it is left out. */
export const withDefault = <T extends TSchema>(schema: T, value: Static<T>): T => ({
  ...schema,
  default: value,
});

/** A closed vocabulary as a schema. */
export const OneOf = <const T extends readonly string[]>(values: T) =>
  Type.Unsafe<T[number]>({ type: 'string', enum: [...values] });
