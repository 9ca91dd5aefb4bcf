import { Type, type Static, type TProperties, type TSchema } from '@sinclair/typebox';
import { AnyObject, OneOf, closed } from '../../domain/events/schema-parts.ts';
import { errorStatuses, type ErrorCode } from '../errors.ts';

/**
 * Parts of responses. Tests check that an object in a response has exactly the fields of its schema. The published
 * description allows more fields, so that clients tolerate later additions.
 *
 * A schema with a `title` is published under that name.
 */

/** Responses of an endpoint by status, without errors, which share one body. */
export type Responses = Readonly<Record<number, TSchema>>;

/** A UUID. */
export const id = Type.String({ format: 'uuid' });

/** The namespace of a record; left out in `default`. */
export const namespace = Type.Optional(
  Type.String({ description: 'the namespace that it belongs to; left out in `default`' }),
);

/** The name of an agent beside its id. */
export const agentName = Type.Union([Type.String(), Type.Null()], {
  description: "the agent's current or last name; null if there is no agent",
});

/** ISO 8601 in UTC with milliseconds. */
export const time = Type.String({ format: 'date-time' });

/** A number of items. */
export const count = Type.Integer({ minimum: 0 });

/** The response to a command that returns no resource. */
export const done = <T extends TProperties>(details: T) =>
  closed({ success: Type.Literal(true), message: Type.String(), details: closed(details) });

/** The envelope of a list. @param total its schema, if the number of items may be unknown */
export const pageOf = <T extends TSchema, Total extends TSchema = typeof count>(
  title: string,
  item: T,
  total?: Total,
) =>
  Type.Object(
    {
      items: Type.Array(item, {
        description:
          'may be fewer than `limit`, because a response has at most 4 MiB; `has_more` says whether there are more',
      }),
      total: (total ?? count) as Total,
      limit: Type.Integer({ minimum: 1, maximum: 200 }),
      offset: count,
      has_more: Type.Boolean(),
      next_cursor: Type.Union([Type.String(), Type.Null()], {
        description: 'cursor of the next page, at the same cost at any depth; null at the end',
      }),
    },
    { title, additionalProperties: false },
  );

/** Replaces a value that is too large for a list. */
export const Truncated = Type.Object(
  {
    truncated: Type.Literal(true),
    size_bytes: Type.Integer({ minimum: 0, description: 'size of its JSON in UTF-8' }),
  },
  { title: 'Truncated', additionalProperties: false },
);
export type Truncated = Static<typeof Truncated>;

/** A payload in a list. */
export const listedPayload = Type.Union([Truncated, AnyObject], {
  description: 'a payload over 64 KiB is replaced by its size',
});

/** A stream of server-sent events. */
export const eventStream = Type.String({
  contentMediaType: 'text/event-stream',
  description:
    'server-sent events with `id`, `event` and `data` (JSON), until either side closes the stream',
});

/** A response of another type than JSON, such as plain text. */
export const textOf = (mediaType: string) => Type.String({ contentMediaType: mediaType });

/** The media type of a response schema. */
export function mediaTypeOf(schema: TSchema): string {
  const given: unknown = schema['contentMediaType'];
  return typeof given === 'string' ? given : 'application/json';
}

/** All media types of a response schema. The client chooses. */
export function mediaTypesOf(schema: TSchema): readonly string[] {
  const others = (schema['otherMediaTypes'] ?? []) as readonly string[];
  return [mediaTypeOf(schema), ...others];
}

/** The schema of a response in one of its media types. */
export function schemaAs(schema: TSchema, mediaType: string): TSchema {
  const { otherMediaTypes, ...rest } = schema;
  return otherMediaTypes === undefined ? schema : { ...rest, contentMediaType: mediaType };
}

const codes = Object.keys(errorStatuses) as ErrorCode[];

const Issue = Type.Object(
  { field: Type.String(), issue: Type.String() },
  { title: 'Issue', additionalProperties: false },
);

/** The error body of all endpoints. `details` depends on the code: docs/reference/errors.md. */
export const ErrorBody = Type.Object(
  {
    error: OneOf(codes),
    message: Type.String(),
    details: Type.Object({
      field: Type.Optional(Type.String({ description: 'what is wrong' })),
      issue: Type.Optional(Type.String()),
      issues: Type.Optional(Type.Array(Issue, { minItems: 1 })),
    }),
    request_id: Type.String({ minLength: 1 }),
  },
  { title: 'Error', additionalProperties: false },
);
export type ErrorBody = Static<typeof ErrorBody>;
