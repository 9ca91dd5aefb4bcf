import { invalidInput, RefusalError, type Issue } from '../../domain/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import {
  checkedParams,
  defaultParamsIssues,
  paramsSchemaIssue,
  type ParamsRules,
} from '../../domain/pipeline/params.ts';
import { withinTime } from './time-limit.ts';

/** Checks params against schemas that clients wrote, within a time limit. */

/**
 * The params for a run's request: the given params, checked by its task's rules.
 * @returns undefined if the run has only the task's defaults
 * @throws RefusalError `INVALID` listing the issues, at paths such as `params.limit`
 */
export function paramsFor(
  rules: ParamsRules,
  given: Readonly<Record<string, unknown>> | undefined,
): JsonObject | undefined {
  // The type of the body does not say that it is JSON.
  const params = given as JsonObject | undefined;
  const { params_schema: schema = null } = rules;
  if (schema === null) return checkedParams(rules, params);
  return withinTime(() => checkedParams(rules, params), tooSlow('params'));
}

/** Whether a run may have these params by the rules of its task. */
export function takesParams(rules: ParamsRules, given: JsonObject | undefined): boolean {
  try {
    paramsFor(rules, given);
    return true;
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    return false;
  }
}

/**
 * The issues of a task's `params_schema` and of its default params.
 * @param given whether its runs may be given params that the defaults lack
 */
export function paramsRulesIssues(rules: ParamsRules, given: boolean): readonly Issue[] {
  const { params_schema: schema = null } = rules;
  if (schema === null) return [];
  return withinTime(() => {
    const issue = paramsSchemaIssue(schema);
    return issue === null ? defaultParamsIssues(rules, given) : [issue];
  }, tooSlow('params_schema'));
}

const tooSlow = (field: string) => (): Error => {
  const issue = 'takes too long to check; simplify the patterns and references of params_schema';
  return invalidInput([{ field, issue }]);
};
