import type { TSchema } from '@sinclair/typebox';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { Issue } from '../domain/errors.ts';
import { badRequest } from './errors.ts';

const bodies = new Ajv({ allErrors: true, strict: false, validateFormats: false });
const queries = new Ajv({
  allErrors: true,
  strict: false,
  validateFormats: false,
  coerceTypes: true,
  useDefaults: true,
});

/** Compiles a schema of bodies. @returns throws HttpError 400 listing every fault */
export function bodyCheck(schema: TSchema): (body: unknown) => void {
  const check = bodies.compile(schema);
  return (body) => {
    if (!check(body)) throw faultsOf(check, 'body');
  };
}

/**
 * Compiles a schema of query parameters, which are texts and become what the schema says. Parameters that
 * the schema does not know are left out.
 */
export function queryCheck(schema: TSchema): (query: Record<string, unknown>) => object {
  const check = queries.compile(schema);
  const known = Object.keys((schema as { properties?: object }).properties ?? {});
  return (query) => {
    const values: Record<string, unknown> = {};
    for (const name of known) {
      const value = query[name];
      if (value !== undefined) values[name] = value;
    }
    if (!check(values)) throw faultsOf(check, 'query');
    return values;
  };
}

function faultsOf(check: ValidateFunction, whole: string): Error {
  const errors = check.errors ?? [];
  // Of a value that fits no branch of a union, the branches' own faults say less than the whole.
  const issues = dedupe(
    errors.filter(({ keyword }) => keyword !== 'if').map((e) => issueOf(e, whole)),
  );
  const [first, ...rest] = issues;
  return badRequest([first ?? { field: whole, issue: 'is not as it should be' }, ...rest]);
}

function issueOf(error: ErrorObject, whole: string): Issue {
  const path = error.instancePath.split('/').slice(1).map(unescapePointer);
  const { params } = error;
  switch (error.keyword) {
    case 'additionalProperties':
      return {
        field: [...path, params['additionalProperty']].join('.'),
        issue: 'is not a known field',
      };
    case 'required':
      return { field: [...path, params['missingProperty']].join('.'), issue: 'is required' };
    case 'enum':
      return {
        field: path.join('.') || whole,
        issue: `must be one of ${(params['allowedValues'] as unknown[]).join(', ')}`,
      };
    case 'type':
      return { field: path.join('.') || whole, issue: `must be ${typesOf(params['type'])}` };
    default:
      return { field: path.join('.') || whole, issue: error.message ?? 'is not as it should be' };
  }
}

const typesOf = (type: unknown): string =>
  Array.isArray(type) ? type.join(' or ') : `of type ${type}`;

const unescapePointer = (part: string): string => part.replaceAll('~1', '/').replaceAll('~0', '~');

function dedupe(issues: readonly Issue[]): Issue[] {
  const seen = new Map<string, Issue>();
  for (const issue of issues) {
    const known = seen.get(issue.field);
    // A union of a type and null reports each branch and the union: the first of a field is the telling one.
    if (!known) seen.set(issue.field, issue);
  }
  return [...seen.values()];
}
