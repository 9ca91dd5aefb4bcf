import { Type, type Static, type TProperties, type TSchema } from '@sinclair/typebox';
import { AnyObject, OneOf, closed } from '../../domain/events/schema-parts.ts';
import { errorStatuses, type ErrorCode } from '../errors.ts';

/**
 * What answers are made of. An object in an answer has the fields of its schema and no others: the tests hold every
 * answer to that. The published description says less, so that clients bear fields that are added later.
 *
 * A schema with a `title` is published under that name.
 */

/** Answers of an endpoint, by status. Errors need not be told: they have one body. */
export type Answers = Readonly<Record<number, TSchema>>;

/** A UUID. */
export const id = Type.String({ format: 'uuid' });

/** ISO 8601 in UTC with milliseconds. */
export const time = Type.String({ format: 'date-time' });

/** Of things, from none on. */
export const count = Type.Integer({ minimum: 0 });

/** What a command is answered that shows no resource. */
export const done = <T extends TProperties>(details: T) =>
  closed({ success: Type.Literal(true), message: Type.String(), details: closed(details) });

/** The envelope of a list. */
export const pageOf = <T extends TSchema>(title: string, item: T) =>
  Type.Object(
    {
      items: Type.Array(item, {
        description:
          'fewer than `limit` where the page ends early, as a response has 4 MiB at most; `has_more` tells',
      }),
      total: count,
      limit: Type.Integer({ minimum: 1, maximum: 200 }),
      offset: count,
      has_more: Type.Boolean(),
      next_cursor: Type.Union([Type.String(), Type.Null()], {
        description: 'goes on behind the last item, at any depth at the same cost; null at the end',
      }),
    },
    { title, additionalProperties: false },
  );

/** What stands in a list for a value that is too large for it. */
export const Truncated = Type.Object(
  {
    truncated: Type.Literal(true),
    size_bytes: Type.Integer({ minimum: 0, description: 'of its JSON text, in UTF-8' }),
  },
  { title: 'Truncated', additionalProperties: false },
);
export type Truncated = Static<typeof Truncated>;

/** A payload in a list. */
export const listedPayload = Type.Union([Truncated, AnyObject], {
  description: 'one over 64 KiB is left out, and its size stands for it',
});

/** An answer that goes on for long: server-sent events. */
export const eventStream = Type.String({
  contentMediaType: 'text/event-stream',
  description: 'server-sent events: `id`, `event` and `data` (JSON), until either side ends it',
});

/** An answer of plain text, or of another type than JSON. */
export const textOf = (mediaType: string) => Type.String({ contentMediaType: mediaType });

/** The media type of an answer with such a schema. */
export function mediaTypeOf(schema: TSchema): string {
  const given: unknown = schema['contentMediaType'];
  return typeof given === 'string' ? given : 'application/json';
}

/** All media types that an answer with such a schema may have; the client says which. */
export function mediaTypesOf(schema: TSchema): readonly string[] {
  const others = (schema['otherMediaTypes'] ?? []) as readonly string[];
  return [mediaTypeOf(schema), ...others];
}

/** The schema of an answer in one of its media types. */
export function schemaAs(schema: TSchema, mediaType: string): TSchema {
  const { otherMediaTypes, ...rest } = schema;
  return otherMediaTypes === undefined ? schema : { ...rest, contentMediaType: mediaType };
}

const codes = Object.keys(errorStatuses) as ErrorCode[];

const Issue = Type.Object(
  { field: Type.String(), issue: Type.String() },
  { title: 'Issue', additionalProperties: false },
);

/** The one error body of all endpoints. What `details` has goes by the code: docs/reference/errors.md. */
export const ErrorBody = Type.Object(
  {
    error: OneOf(codes),
    message: Type.String(),
    details: Type.Object({
      field: Type.Optional(Type.String({ description: 'what is at fault' })),
      issue: Type.Optional(Type.String()),
      issues: Type.Optional(Type.Array(Issue, { minItems: 1 })),
    }),
    request_id: Type.String({ minLength: 1 }),
  },
  { title: 'Error', additionalProperties: false },
);
export type ErrorBody = Static<typeof ErrorBody>;
