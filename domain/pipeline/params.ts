import { invalidInput, type Issue } from '../errors.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import { argumentCheck } from './arguments.ts';
import { jsonBytes } from './json-size.ts';
import type { SchemaError } from './schema-errors.ts';

/**
 * The params of a run. A task's payload has the defaults, and a run may replace them key by key. If the task has a
 * `params_schema` (a JSON Schema), the result must match it.
 */

/** The largest params given to one run, in bytes of JSON. */
export const MAX_PARAMS_BYTES = 64 * 1024;

/** The most issues that an error lists. */
const MAX_ISSUES = 100;

/** The parts of a task's definition about its params. */
export interface ParamsRules {
  readonly payload: object;
  readonly params_schema?: object | null;
}

/** A task's default params; `{}` if its payload has none or they are not an object. */
export function defaultParams(payload: object): JsonObject {
  const { params } = payload as { readonly params?: unknown };
  return isJsonObject(params) ? params : {};
}

/** The defaults, overridden by the given params. @param given null: none */
export function mergeParams(defaults: JsonObject, given: JsonObject | null): JsonObject {
  return given === null ? defaults : { ...defaults, ...given };
}

/** The first fault of a `params_schema`: it must be a JSON Schema of an object, without references to others. */
export function paramsSchemaIssue(schema: object): Issue | null {
  if ((schema as { readonly type?: unknown }).type !== 'object') {
    return { field: 'params_schema.type', issue: 'must be "object", as params are an object' };
  }
  try {
    argumentCheck(schema);
    return null;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return issueOfSchema(error);
  }
}

function issueOfSchema(error: Error): Issue {
  if ('missingRef' in error) {
    const issue = `cannot resolve the reference ${String(error.missingRef)}; only references into the schema itself (#/…) are allowed`;
    return { field: 'params_schema', issue };
  }
  const [, pointer, issue] =
    /^schema is invalid: data(\S*) (.*?)(?:, data\/.*)?$/s.exec(error.message) ?? [];
  if (pointer === undefined || issue === undefined) {
    return { field: 'params_schema', issue: `is not a valid JSON Schema: ${error.message}` };
  }
  return { field: `params_schema${pointer.replaceAll('/', '.')}`, issue };
}

/**
 * The issues of a task's defaults by its schema.
 * @param given whether a run may be given params that the defaults lack; otherwise the defaults must satisfy the whole
 *   schema
 */
export function defaultParamsIssues(rules: ParamsRules, given: boolean): readonly Issue[] {
  const { payload, params_schema: schema } = rules;
  if (schema === null || schema === undefined) return [];
  const defaults = defaultParams(payload);
  const isOfDefault = ({ path: [key] }: SchemaError): boolean =>
    key !== undefined && Object.hasOwn(defaults, key);
  return issuesOf(
    faultsOf(schema, defaults).filter((fault) => !given || isOfDefault(fault)),
    'payload.params',
  );
}

/** The keys that a task's schema requires and its defaults lack. Cheap: it applies no schema. */
export function requiredParams({ payload, params_schema: schema }: ParamsRules): readonly string[] {
  const { required } = (schema ?? {}) as { readonly required?: unknown };
  if (!Array.isArray(required)) return [];
  const defaults = defaultParams(payload);
  return required.filter(
    (key): key is string => typeof key === 'string' && !Object.hasOwn(defaults, key),
  );
}

/**
 * Checks the params of a run by its task's rules.
 * @param given overrides defaults; undefined: the run has only the defaults
 * @returns the params for the run's request: `given`, or undefined if it overrides nothing
 * @throws RefusalError `INVALID` listing the issues at paths such as `params.limit`
 */
export function checkedParams(
  rules: ParamsRules,
  given: JsonObject | undefined,
): JsonObject | undefined {
  const params = given === undefined || Object.keys(given).length === 0 ? undefined : given;
  const bytes = params === undefined ? 0 : jsonBytes(params);
  if (bytes > MAX_PARAMS_BYTES) {
    const issue = `must have at most ${MAX_PARAMS_BYTES} bytes of JSON, got ${bytes}`;
    throw invalidInput([{ field: 'params', issue }]);
  }
  const { payload, params_schema: schema } = rules;
  if (schema === null || schema === undefined) return params;
  const merged = mergeParams(defaultParams(payload), params ?? null);
  const [first, ...rest] = issuesOf(faultsOf(schema, merged), 'params');
  if (first !== undefined) throw invalidInput([first, ...rest]);
  return params;
}

function faultsOf(schema: object, params: JsonObject): readonly SchemaError[] {
  try {
    return argumentCheck(schema)(params);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const issue = 'cannot be checked, as params_schema refers to itself without end';
    return [{ path: [], issue, keyword: '$ref' }];
  }
}

function issuesOf(faults: readonly SchemaError[], field: string): readonly Issue[] {
  return faults.slice(0, MAX_ISSUES).map(({ path, issue, keyword }) => {
    return { field: [field, ...path].join('.'), issue: words[keyword] ?? issue };
  });
}

const words: Readonly<Record<string, string>> = {
  required: 'is required by params_schema',
  additionalProperties: 'is not in params_schema',
};
