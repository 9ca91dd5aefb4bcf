import type { TSchema } from '@sinclair/typebox';
import { endpoints } from '../../api/app.ts';
import type { DescribedEndpoint } from '../../api/openapi/endpoint-outcomes.ts';
import { hostEndpoints } from '../../api/endpoints/extension-endpoints.ts';
import { unlistedEndpoints } from '../../api/openapi/unlisted-endpoints.ts';
import { builtInEndpoints } from '../support/response-check.ts';

/** Fields that are equal everywhere: the table has them once. */
export const conventions = [
  ...['limit', 'offset', 'cursor', 'after', 'view'],
  ...['items', 'total', 'has_more', 'next_cursor'],
  ...['success', 'message', 'details'],
] as const;

/** Paths that the interface does not name: shown by endpoint, and not field by field. */
const beyond =
  /^\/(projections|replays|streams|audit|operations|backfills|concurrency)\b|^\/tasks\/(due$|.*(backfills?|history)$)|^\/(runs|agents)\/.*(history|webhook.*)$/;

/** The items of an endpoint that the coverage table must have. */
export interface Need {
  /** `POST /tasks`. */
  readonly endpoint: string;
  /** The endpoint by each of its paths. */
  readonly paths: readonly string[];
  readonly statuses: readonly string[];
  readonly headers: readonly string[];
  /** The endpoint itself, or a schema by its title; null: it is outside the interface. */
  readonly fields:
    | readonly (readonly [kind: string, of: string, fields: readonly string[]])[]
    | null;
}

type Properties = Readonly<Record<string, TSchema>>;

export const writtenEndpoint = (method: string, path: string): string =>
  `${method.toUpperCase()} ${path.replaceAll(/:([a-z_]+)/g, '{$1}')}`;

/** The items of every served endpoint. */
export function coverageNeeds(): readonly Need[] {
  const all = [...endpoints, ...unlistedEndpoints, ...hostEndpoints, ...builtInEndpoints];
  return all.map((each) => {
    const { method, paths, responses: answers, responseHeaders: answerHeaders = [] } = each;
    return {
      endpoint: writtenEndpoint(method, paths[0]),
      paths: paths.map((path) => writtenEndpoint(method, path)),
      statuses: Object.keys(answers),
      headers: answerHeaders,
      fields: beyond.test(paths[0]) ? null : fieldsOf(each),
    };
  });
}

function fieldsOf(endpoint: DescribedEndpoint): NonNullable<Need['fields']> {
  const { method, paths, query, body, responses: answers } = endpoint;
  const of = writtenEndpoint(method, paths[0]);
  const taken = [...needs(query, of), ...needs(body, of)];
  const answered = Object.values(answers).flatMap((schema) => needs(schema, of));
  return [
    ...taken.map(([key, fields]) => ['takes', key, fields] as const),
    ...answered.map(([key, fields]) => ['answers', key, fields] as const),
  ].filter(([, , fields]) => fields.length > 0);
}

/** The fields of a schema: under its title if it has one, otherwise under its endpoint. */
function needs(
  schema: TSchema | undefined,
  of: string,
): readonly (readonly [of: string, fields: readonly string[]])[] {
  if (schema === undefined) return [];
  const parts = (schema['allOf'] ?? schema['anyOf']) as readonly TSchema[] | undefined;
  if (parts !== undefined) return parts.flatMap((part) => needs(part, of));
  if (schema['items'] !== undefined) return needs(schema['items'] as TSchema, of);
  const properties = (schema['properties'] ?? {}) as Properties;
  const { items, details } = properties;
  const own = Object.keys(properties).filter(
    (name) => !(conventions as readonly string[]).includes(name),
  );
  const key = schema.title === undefined || items !== undefined ? of : schema.title;
  return [[key, own], ...needs(items, of), ...needs(details, of)];
}
