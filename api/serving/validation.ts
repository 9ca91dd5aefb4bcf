import type { TSchema } from '@sinclair/typebox';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { Issue } from '../../domain/errors.ts';
import { addLengthKeywords } from '../../domain/events/length-keywords.ts';
import { isUuid } from '../../domain/ids.ts';
import { truncateString } from '../../domain/pipeline/json-size.ts';
import { limitMessage } from '../../domain/pipeline/schema-errors.ts';
import { placesWholeSecrets } from '../../domain/secrets/secret-url.ts';
import { badRequest, type HttpError } from '../errors.ts';

/** Limits of an error: its issues, and the characters of a field's path. */
const MAX_ISSUES = 100;
const MAX_FIELD_LENGTH = 200;

/** The form of a number (RFC 8259, 6), with optional leading zeros. */
const NUMBER = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i;

const common = {
  allErrors: true,
  strict: false,
  // Gives errors the schema, whose description explains more than its pattern.
  verbose: true,
  // The schemas are the service's own.
  meta: false,
  validateSchema: false,
  code: { optimize: false },
  formats: { uuid: isUuid, 'http-url': isHttpUrl, 'well-formed': isWellFormed },
} as const;
const bodies = new Ajv({ ...common, strictNumbers: true });
// With strict numbers, a string that is coerced to `Infinity` would pass.
const queries = new Ajv({ ...common, strictNumbers: false, coerceTypes: true, useDefaults: true });
addLengthKeywords(bodies);
addLengthKeywords(queries);

/**
 * The check of bodies against a schema, compiled at its first use: compiling all would delay the start.
 * @returns a function that throws HttpError 400 listing every issue
 */
export function bodyCheck(schema: TSchema): (body: unknown) => void {
  let compiled: ValidateFunction | undefined;
  const limits = sizeLimitsOf(schema);
  return (body) => {
    checkSize(body, limits);
    const check = (compiled ??= bodies.compile(schema));
    if (!check(body)) throw invalid(issuesOf(check, 'body'));
  };
}

/** The check of a command without fields, which takes no body or an empty object. */
export function checkEmpty(body: unknown): void {
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  if (!isObject) throw badRequest([{ field: 'body', issue: 'must be object' }]);
  const [field] = Object.keys(body);
  if (field === undefined) return;
  throw badRequest([{ field, issue: unknownField(field) }]);
}

function unknownField(field: string): string {
  return `is not a known field${field === 'reason' ? '; X-Reason takes a reason' : ''}`;
}

/** The limits of a body's size, as far as its schema defines them. */
interface SizeLimits {
  /** The known fields; null: any. */
  readonly fields: ReadonlySet<string> | null;
  /** `maxItems` by field. */
  readonly lists: ReadonlyMap<string, number>;
}

function sizeLimitsOf(schema: TSchema): SizeLimits {
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

/** Rejects huge bodies early, because Ajv makes an object of every error. */
function checkSize(body: unknown, { fields, lists }: SizeLimits): void {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return;
  const names = Object.keys(body);
  if (fields !== null && names.length > fields.size + MAX_ISSUES) {
    const unknown = names.filter((name) => !fields.has(name)).slice(0, MAX_ISSUES);
    throw invalid(
      unknown.map((name) => {
        return { field: truncateString(name, MAX_FIELD_LENGTH), issue: 'is not a known field' };
      }),
    );
  }
  for (const [field, most] of lists) {
    const value = (body as Readonly<Record<string, unknown>>)[field];
    if (Array.isArray(value) && value.length > most) {
      throw badRequest([{ field, issue: `must have at most ${most} items` }]);
    }
  }
}

/**
 * The check of query parameters against a schema, which coerces the strings to its types.
 * @param schema undefined: there are no parameters
 * @returns a function that throws HttpError 400 listing every issue: unknown parameters, repeated ones and invalid
 *   values
 */
export function queryCheck(
  schema: TSchema | undefined,
): (query: Readonly<Record<string, unknown>>) => object {
  let compiled: ValidateFunction | undefined;
  const { properties = {}, additionalProperties } = (schema ?? {}) as {
    readonly properties?: Readonly<Record<string, { readonly type?: unknown }>>;
    readonly additionalProperties?: unknown;
  };
  const known = Object.keys(properties);
  const numbers = new Set(
    known.filter((name) => ['integer', 'number'].includes(String(properties[name]?.type))),
  );
  return (query) => {
    const issues = additionalProperties === true ? [] : unknownParameters(query, known);
    const values: Record<string, unknown> = {};
    for (const name of known) {
      const value = query[name];
      if (value === undefined) continue;
      const issue = issueOfValue(value);
      if (issue !== null) issues.push({ field: name, issue });
      // Ajv would coerce all strings that `Number` accepts, such as those with other bases and
      // spaces, but never a list.
      const isNoNumber = numbers.has(name) && typeof value === 'string' && !NUMBER.test(value);
      values[name] = isNoNumber ? [value] : value;
    }
    const check = schema === undefined ? null : (compiled ??= queries.compile(schema));
    if (check !== null && !check(values)) {
      // The parameter's existing issue is more useful.
      const reported = new Set(issues.map(({ field }) => field));
      issues.push(...issuesOf(check, 'query').filter(({ field }) => !reported.has(field)));
    }
    if (issues.length > 0) throw invalid(issues.slice(0, MAX_ISSUES));
    return values;
  };
}

function unknownParameters(
  query: Readonly<Record<string, unknown>>,
  known: readonly string[],
): Issue[] {
  const unknown = Object.keys(query).filter((name) => !known.includes(name));
  if (unknown.length === 0) return [];
  const hint =
    known.length === 0 ? 'there are none here' : `there are ${[...known].sort().join(', ')}`;
  const issue = `is not a known query parameter; ${hint}`;
  return unknown.map((name) => ({ field: truncateString(name, MAX_FIELD_LENGTH), issue }));
}

/** Why a parameter's value is invalid by any schema; null if it is not. */
function issueOfValue(value: unknown): string | null {
  if (Array.isArray(value)) return `must be given once, got ${value.length}`;
  // Stores would truncate the string there, and would then find other records.
  const hasNull = typeof value === 'string' && value.includes('\0');
  return hasNull ? 'must not contain the character U+0000' : null;
}

/** Whether a string has no lone surrogate. */
function isWellFormed(value: string): boolean {
  return !/\p{Surrogate}/u.test(value);
}

/**
 * Whether a string is a URL without user and password. These are not allowed, because events and responses show the
 * URL.
 */
function isHttpUrl(value: string): boolean {
  if (!/^https?:\/\/[^\s/]/i.test(value) || !URL.canParse(value)) return false;
  if (!placesWholeSecrets(value)) return false;
  const { username, password } = new URL(value);
  return username === '' && password === '';
}

function invalid([first, ...rest]: readonly Issue[]): HttpError {
  return badRequest([first ?? { field: 'body', issue: 'is invalid' }, ...rest]);
}

function issuesOf(check: ValidateFunction, whole: string): readonly Issue[] {
  const byField = new Map<string, ErrorObject[]>();
  for (const error of check.errors ?? []) {
    const field = fieldOf(error, whole);
    const known = byField.get(field);
    if (known) known.push(error);
    else if (byField.size < MAX_ISSUES) byField.set(field, [error]);
  }
  return [...byField].map(([field, errors]): Issue => ({ field, issue: issueOf(errors) }));
}

function fieldOf({ instancePath, keyword, params }: ErrorObject, whole: string): string {
  const path = instancePath.split('/').slice(1).map(unescapePointer);
  if (keyword === 'additionalProperties') path.push(String(params['additionalProperty']));
  if (keyword === 'required') path.push(String(params['missingProperty']));
  return truncateString(path.join('.') || whole, MAX_FIELD_LENGTH);
}

/**
 * The fault of a field. If a value may have several types, each branch reports an error. The error of the matching type
 * is the most useful; if no type matches, the types are named together.
 */
function issueOf(errors: readonly ErrorObject[]): string {
  const specific = errors.find(({ keyword }) => keyword !== 'type' && keyword !== 'anyOf');
  if (specific !== undefined) return messageOf(specific);
  const types = errors
    .filter(({ keyword }) => keyword === 'type')
    .flatMap(({ params }) => params['type'] as string | string[]);
  return types.length === 0 ? 'is invalid' : `must be ${[...new Set(types)].join(' or ')}`;
}

function messageOf(error: ErrorObject): string {
  if (error.keyword === 'additionalProperties') {
    return unknownField(String(error.params['additionalProperty']));
  }
  return error.keyword === 'required' ? 'is required' : limitMessage(error);
}

const unescapePointer = (part: string): string => part.replaceAll('~1', '/').replaceAll('~0', '~');
