import type { TSchema } from '@sinclair/typebox';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { Issue } from '../../domain/errors.ts';
import { countCharactersRarely } from '../../domain/events/text-length.ts';
import { isUuid } from '../../domain/ids.ts';
import { start } from '../../domain/pipeline/size.ts';
import { limitWords } from '../../domain/pipeline/schema-faults.ts';
import { badRequest } from '../errors.ts';

/** Most issues that an answer lists, and the longest name of a field in one. */
const MOST_ISSUES = 100;
const LONGEST_FIELD = 200;

/** How a number is written (RFC 8259, 6); zeros may stand before it. */
const NUMBER = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i;

const common = {
  allErrors: true,
  strict: false,
  // For the description of a schema, which says better than a pattern what is wanted.
  verbose: true,
  // The schemas are our own, as those of the events: see the codec for both.
  meta: false,
  validateSchema: false,
  code: { optimize: false },
  formats: { uuid: isUuid, 'http-url': isHttpUrl, 'well-formed': isWellFormed },
} as const;
const bodies = new Ajv({ ...common, strictNumbers: true });
// Not strict with numbers: a text that becomes `Infinity` would be looked at no further, and pass.
const queries = new Ajv({ ...common, strictNumbers: false, coerceTypes: true, useDefaults: true });
countCharactersRarely(bodies);
countCharactersRarely(queries);

/**
 * The check of bodies by a schema. Like that of a query it is compiled by the first of them, some milliseconds of work:
 * compiling all would hold up the start.
 *
 * @returns throws HttpError 400 listing every fault
 */
export function bodyCheck(schema: TSchema): (body: unknown) => void {
  let compiled: ValidateFunction | undefined;
  const sizes = sizesOf(schema);
  return (body) => {
    checkSize(body, sizes);
    const check = (compiled ??= bodies.compile(schema));
    if (!check(body)) throw faultsOf(check, 'body');
  };
}

/** How much a body may hold, as far as its schema says so. */
interface Sizes {
  /** Its fields; null: any. */
  readonly fields: ReadonlySet<string> | null;
  /** The most items of each field that is a list. */
  readonly lists: ReadonlyMap<string, number>;
}

function sizesOf(schema: TSchema): Sizes {
  const { properties = {}, additionalProperties } = schema as {
    readonly properties?: Readonly<Record<string, { readonly maxItems?: number }>>;
    readonly additionalProperties?: unknown;
  };
  const lists = new Map<string, number>();
  for (const [name, { maxItems }] of Object.entries(properties)) {
    if (maxItems !== undefined) lists.set(name, maxItems);
  }
  return {
    fields: additionalProperties === false ? new Set(Object.keys(properties)) : null,
    lists,
  };
}

/** Refuses what is far too much before each part of it is looked at: Ajv makes an object of every fault. */
function checkSize(body: unknown, { fields, lists }: Sizes): void {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return;
  const names = Object.keys(body);
  if (fields !== null && names.length > fields.size + MOST_ISSUES) {
    const unknown = names.filter((name) => !fields.has(name)).slice(0, MOST_ISSUES);
    const [first, ...rest] = unknown.map((name): Issue => {
      return { field: start(name, LONGEST_FIELD), issue: 'is not a known field' };
    });
    if (first !== undefined) throw badRequest([first, ...rest]);
  }
  for (const [field, most] of lists) {
    const value = (body as Readonly<Record<string, unknown>>)[field];
    if (Array.isArray(value) && value.length > most) {
      throw badRequest([{ field, issue: `must have at most ${most} items` }]);
    }
  }
}

/**
 * The check of query parameters by a schema; they are strings and become what the schema says.
 *
 * @param schema undefined: there are no parameters
 * @returns throws HttpError 400 listing every fault: a parameter that the schema does not have (naming those that it has),
 *   one that is given more than once, and a bad value
 */
export function queryCheck(
  schema: TSchema | undefined,
): (query: Readonly<Record<string, unknown>>) => object {
  let compiled: ValidateFunction | undefined;
  const { properties = {} } = (schema ?? {}) as {
    readonly properties?: Readonly<Record<string, { readonly type?: unknown }>>;
  };
  const known = Object.keys(properties);
  const numbers = new Set(
    known.filter((name) => ['integer', 'number'].includes(String(properties[name]?.type))),
  );
  return (query) => {
    const issues = [...unknownIn(query, known), ...faultyIn(query, known)];
    const values: Record<string, unknown> = {};
    for (const name of known) {
      const value = query[name];
      if (value === undefined) continue;
      // To Ajv whatever `Number` takes is one, in other bases and between spaces; a list never is.
      const isOther = numbers.has(name) && typeof value === 'string' && !NUMBER.test(value);
      values[name] = isOther ? [value] : value;
    }
    const check = schema === undefined ? null : (compiled ??= queries.compile(schema));
    if (check !== null && !check(values)) {
      // What was said of a parameter already says more.
      const told = new Set(issues.map(({ field }) => field));
      issues.push(...issuesOf(check, 'query').filter(({ field }) => !told.has(field)));
    }
    const [first, ...rest] = issues.slice(0, MOST_ISSUES);
    if (first !== undefined) throw badRequest([first, ...rest]);
    return values;
  };
}

function unknownIn(query: Readonly<Record<string, unknown>>, known: readonly string[]): Issue[] {
  const there =
    known.length === 0 ? 'there are none here' : `there are ${[...known].sort().join(', ')}`;
  return Object.keys(query)
    .filter((name) => !known.includes(name))
    .map((name) => {
      const issue = `is not a known query parameter; ${there}`;
      return { field: start(name, LONGEST_FIELD), issue };
    });
}

/** Parameters whose values are at fault whatever their schema says. */
function faultyIn(query: Readonly<Record<string, unknown>>, known: readonly string[]): Issue[] {
  return known.flatMap((field) => {
    const value = query[field];
    if (Array.isArray(value)) return [{ field, issue: `must be given once, got ${value.length}` }];
    // Stores cut a text off there, and would look for another one.
    const hasNull = typeof value === 'string' && value.includes('\0');
    return hasNull ? [{ field, issue: 'must not hold the character U+0000' }] : [];
  });
}

/** Whether no half of a pair of surrogates stands alone. */
function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

/** Without a user and a password: an address stands in events and answers, where no secret may. */
function isHttpUrl(text: string): boolean {
  if (!/^https?:\/\/[^\s/]/i.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === '' && password === '';
}

function faultsOf(check: ValidateFunction, whole: string): Error {
  const [first, ...rest] = issuesOf(check, whole);
  return badRequest([first ?? { field: whole, issue: 'is not as it should be' }, ...rest]);
}

function issuesOf(check: ValidateFunction, whole: string): readonly Issue[] {
  const byField = new Map<string, ErrorObject[]>();
  for (const error of check.errors ?? []) {
    const field = fieldOf(error, whole);
    const known = byField.get(field);
    if (known) known.push(error);
    else if (byField.size < MOST_ISSUES) byField.set(field, [error]);
  }
  return [...byField].map(([field, errors]): Issue => ({ field, issue: issueOf(errors) }));
}

function fieldOf({ instancePath, keyword, params }: ErrorObject, whole: string): string {
  const path = instancePath.split('/').slice(1).map(unescapePointer);
  if (keyword === 'additionalProperties') path.push(String(params['additionalProperty']));
  if (keyword === 'required') path.push(String(params['missingProperty']));
  return start(path.join('.') || whole, LONGEST_FIELD);
}

/**
 * What is wrong with a field. Of a value that may be null, each branch says what it is not: where it is of none of
 * the types, they are named together; else the branch that has the right type says the most.
 */
function issueOf(errors: readonly ErrorObject[]): string {
  const types = errors.filter(({ keyword }) => keyword === 'type');
  const telling = errors.find(({ keyword }) => keyword !== 'type' && keyword !== 'anyOf');
  if (telling !== undefined) return wordsOf(telling);
  const names = types.flatMap(({ params }) => params['type'] as string | string[]);
  return names.length === 0
    ? 'is not as it should be'
    : `must be ${[...new Set(names)].join(' or ')}`;
}

function wordsOf(error: ErrorObject): string {
  if (error.keyword === 'additionalProperties') return 'is not a known field';
  return error.keyword === 'required' ? 'is required' : limitWords(error);
}

const unescapePointer = (part: string): string => part.replaceAll('~1', '/').replaceAll('~0', '~');
