import fc, { type Arbitrary } from 'fast-check';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';

/** A request as it is sent. */
export interface RandomRequest {
  readonly method: string;
  readonly path: string;
  /** Sent unchanged, as JSON. */
  readonly raw: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/** Parameters that make a request wait. */
const waiting = ['wait', 'after'];

/** Meaningful values by field name; others are generated from the schema. */
const telling: Readonly<Record<string, readonly JsonValue[]>> = {
  schedule_expr: [
    '*/5 * * * *',
    '0 0 29 2 *',
    '59 59 23 31 12 *',
    '@daily',
    'FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9',
    'FREQ=YEARLY;INTERVAL=400;BYMONTH=2;BYMONTHDAY=30',
    'FREQ=SECONDLY',
    '2090-02-28T23:59:59+14:00',
    'orders.#',
  ],
  grant_type: ['client_credentials', 'refresh_token', 'password'],
  timezone: ['UTC', 'Europe/Berlin', 'Pacific/Apia', 'Mars/Olympus'],
  payload: [
    { pipeline: [] },
    { pipeline: [{ uses: 'echo', with: { a: '${params.x}' } }], params: { x: [null, 1e308] } },
    { pipeline: [{ id: 'a', for_each: '${params.y}', uses: 'nothing' }], __proto__x: {} },
  ],
};
const moments: readonly JsonValue[] = [
  '2026-11-21T09:00:00Z',
  '2020-01-01T00:00:00+05:45',
  '2026-03-29T02:30:00',
  '0001-01-01T00:00:00Z',
  '9999-12-31T23:59:59Z',
  '2026-02-30T00:00:00Z',
];
for (const name of [
  'from',
  'to',
  'at',
  'start_time',
  'end_time',
  'starts_at',
  'ends_at',
  'as_of',
]) {
  (telling as Record<string, readonly JsonValue[]>)[name] = moments;
}

/** Existing ids by resource. */
export type KnownIds = Readonly<Record<'agent' | 'task' | 'run' | 'backfill', string[]>>;

/** The resource of an id by field name; `id` itself follows the resource's name in the path. */
const kinds: Readonly<Record<string, keyof KnownIds>> = {
  agent_id: 'agent',
  client_id: 'agent',
  created_by: 'agent',
  source_agent_id: 'agent',
  task_id: 'task',
  id: 'task',
  run_id: 'run',
  backfill_id: 'backfill',
};

/** Values that few fields accept. */
const strange = fc.oneof(
  fc.constantFrom<JsonValue>(
    null,
    true,
    -1,
    0,
    1e308,
    0.5,
    '',
    ' ',
    '\u0000',
    '\ud83d\ude00',
    [],
    {},
  ),
  fc.constantFrom<JsonValue>('__proto__', 'constructor', '../..', '%00', 'x'.repeat(3000)),
  fc.string({ unit: 'grapheme', maxLength: 50 }),
  fc.jsonValue({ maxDepth: 3 }) as Arbitrary<JsonValue>,
);

/**
 * Requests to the operations of an OpenAPI document, mostly valid, often with one error. Excludes
 * live streams, parameters that make a request wait, and what ends the session of the caller.
 * @param known used for ids; may grow in the meantime
 */
export function randomRequests(document: JsonObject, known: KnownIds): Arbitrary<RandomRequest> {
  const maker = new Maker(document, known);
  const paths = Object.entries(document['paths'] as Readonly<Record<string, JsonObject>>);
  const requests = paths.flatMap(([path, operations]) =>
    Object.entries(operations as Readonly<Record<string, JsonObject>>)
      .filter(([method]) => path !== '/auth/session' || method !== 'delete')
      .filter(([, operation]) => !JSON.stringify(operation).includes('text/event-stream'))
      .map(([method, operation]) => maker.request(method, path, operation)),
  );
  return fc.oneof(...requests);
}

const FORM = 'application/x-www-form-urlencoded';

/** A value as the fields of a form; a list becomes a repeated field. */
function formOf(value: JsonValue): string {
  const form = new URLSearchParams();
  for (const [name, field] of Object.entries(value ?? {})) {
    for (const each of [field].flat()) {
      form.append(name, typeof each === 'string' ? each : JSON.stringify(each));
    }
  }
  return form.toString();
}

/** A parameter of the document. */
interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly schema: JsonObject;
}

class Maker {
  readonly #document: JsonObject;
  readonly #known: KnownIds;

  constructor(document: JsonObject, known: KnownIds) {
    this.#document = document;
    this.#known = known;
  }

  /** Read for each request, because it grows. */
  #idOf(name: string): Arbitrary<string> {
    const kind = kinds[name];
    const there = (ids: () => readonly string[]): Arbitrary<string> =>
      fc.nat().map((number) => ids()[number % ids().length] ?? '');
    const all = there(() => Object.values(this.#known).flat());
    const meant = kind === undefined ? all : there(() => this.#known[kind]);
    return fc.oneof(
      { arbitrary: meant, weight: 12 },
      { arbitrary: all, weight: 1 },
      { arbitrary: fc.uuid(), weight: 1 },
      { arbitrary: meant.map((id) => id.toUpperCase()), weight: 1 },
    );
  }

  request(method: string, path: string, operation: JsonObject): Arbitrary<RandomRequest> {
    const parameters = (operation['parameters'] as readonly JsonObject[]).map(
      (parameter) => this.#resolved(parameter) as unknown as Parameter,
    );
    const placed = (place: string): readonly Parameter[] =>
      parameters.filter((each) => each.in === place && !waiting.includes(each.name));
    const body = (operation['requestBody'] as JsonObject | undefined)?.['content'] as
      | Readonly<Record<string, JsonObject>>
      | undefined;
    const [first] = Object.entries(body ?? {});
    const [type, described] = first ?? [];
    const given = described?.['schema'];
    const schema = given as JsonObject | undefined;
    const isForm = type === FORM;
    return fc
      .record({
        path: this.#fields(placed('path'), true),
        query: this.#fields(placed('query'), false),
        headers: this.#fields(placed('header'), false),
        body: schema === undefined ? fc.constant(undefined) : this.#amiss(schema),
      })
      .map(({ path: places, query, headers, body: sent }) => ({
        method: method.toUpperCase(),
        path: written(path, places, query),
        raw: sent === undefined ? undefined : isForm ? formOf(sent) : JSON.stringify(sent),
        headers: {
          ...(sent === undefined || type === undefined ? {} : { 'content-type': type }),
          ...harmless(headers),
        },
      }));
  }

  #fields(
    parameters: readonly Parameter[],
    all: boolean,
  ): Arbitrary<Readonly<Record<string, JsonValue>>> {
    const fields = Object.fromEntries(
      parameters.map(({ name, schema }) => [name, this.#amiss(schema, name)]),
    );
    return fc.record(fields, all ? {} : { requiredKeys: [] }) as Arbitrary<
      Readonly<Record<string, JsonValue>>
    >;
  }

  /** A value for a schema, and sometimes an invalid one. */
  #amiss(schema: JsonObject, name = ''): Arbitrary<JsonValue> {
    return fc.oneof(
      { arbitrary: this.#value(schema, name), weight: 12 },
      { arbitrary: strange, weight: 1 },
    );
  }

  #resolved(schema: JsonObject): JsonObject {
    const reference = schema['$ref'];
    if (typeof reference !== 'string') return schema;
    const found = reference
      .split('/')
      .slice(1)
      .reduce<JsonValue>((whole, key) => (whole as JsonObject)[key] ?? {}, this.#document);
    return found as JsonObject;
  }

  #value(given: JsonObject, name: string): Arbitrary<JsonValue> {
    const schema = this.#resolved(given);
    const meant = telling[name];
    if (meant !== undefined) return fc.constantFrom(...meant);
    const branches = schema['anyOf'] as readonly JsonObject[] | undefined;
    if (branches) return fc.oneof(...branches.map((each) => this.#value(each, name)));
    const choices = schema['enum'] as readonly JsonValue[] | undefined;
    if (choices) return fc.constantFrom(...choices);
    switch (schema['type']) {
      case 'string':
        return this.#text(schema, name);
      case 'integer':
      case 'number':
        return numberOf(schema);
      case 'boolean':
        return fc.boolean();
      case 'null':
        return fc.constant(null);
      case 'array':
        return fc.array(this.#amiss(schema['items'] as JsonObject), { maxLength: 4 });
      case 'object':
        return this.#object(schema);
      default:
        return fc.jsonValue({ maxDepth: 2 }) as Arbitrary<JsonValue>;
    }
  }

  #text(schema: JsonObject, name: string): Arbitrary<JsonValue> {
    if (schema['format'] === 'uuid') return this.#idOf(name);
    if (schema['format'] === 'uri') return fc.webUrl();
    const { minLength = 0, maxLength = 40 } = schema as { minLength?: number; maxLength?: number };
    if (typeof schema['pattern'] === 'string') return fc.constantFrom('orders.new', 'a', 'a:b/c-1');
    const most = Math.max(minLength, Math.min(maxLength, 40));
    return fc.string({ unit: 'grapheme', minLength, maxLength: most });
  }

  #object(schema: JsonObject): Arbitrary<JsonValue> {
    const properties = (schema['properties'] ?? {}) as Readonly<Record<string, JsonObject>>;
    const required = (schema['required'] ?? []) as readonly string[];
    const fields = Object.entries(properties);
    if (fields.length === 0) {
      return fc.dictionary(fc.string({ maxLength: 10 }), fc.jsonValue({ maxDepth: 2 }), {
        maxKeys: 4,
      }) as Arbitrary<JsonValue>;
    }
    const record = Object.fromEntries(
      fields.map(([name, part]) => {
        const value = this.#amiss(part, name);
        // Few of many optional fields, because otherwise hardly any request would be valid.
        const there = required.includes(name) ? 30 : 1;
        const rare = fc.oneof(
          { arbitrary: value, weight: there },
          { arbitrary: fc.constant(undefined), weight: required.includes(name) ? 1 : 4 },
        );
        return [name, rare];
      }),
    );
    return fc.record(record) as Arbitrary<JsonValue>;
  }
}

function numberOf(schema: JsonObject): Arbitrary<number> {
  const { minimum, exclusiveMinimum, maximum } = schema as Readonly<Record<string, number>>;
  const least = minimum ?? exclusiveMinimum ?? -1000;
  const most = maximum ?? 1_000_000;
  const bounds = fc.constantFrom(least, least - 1, most, most + 1);
  const within =
    schema['type'] === 'integer'
      ? fc.integer({ min: Math.ceil(least), max: Math.min(most, 2 ** 31) })
      : fc.double({ min: least, max: most, noNaN: true });
  return fc.oneof({ arbitrary: within, weight: 6 }, { arbitrary: bounds, weight: 1 });
}

function written(
  path: string,
  places: Readonly<Record<string, JsonValue>>,
  query: Readonly<Record<string, JsonValue>>,
): string {
  const filled = path.replaceAll(/\{([a-z_]+)\}/g, (_, name: string) => encoded(places[name]));
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  const asked = pairs.map(([name, value]) => `${name}=${encoded(value)}`).join('&');
  return asked === '' ? filled : `${filled}?${asked}`;
}

function encoded(value: JsonValue | undefined): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value ?? null);
  // An address cannot contain half of a surrogate pair.
  return encodeURIComponent(Buffer.from(text).toString()) || '%20';
}

/** Omits values that headers cannot carry. */
function harmless(headers: Readonly<Record<string, JsonValue>>): Readonly<Record<string, string>> {
  const texts = Object.entries(headers)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)])
    .filter(([, text = '']) => /^[\t\x20-\x7e\x80-\xff]*$/.test(text));
  return Object.fromEntries(texts) as Readonly<Record<string, string>>;
}
