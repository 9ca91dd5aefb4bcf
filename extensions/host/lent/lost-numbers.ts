import { lostIssue, type LostNumber } from '../../../domain/exact-numbers.ts';
import { ExtensionError } from '../../contract.ts';

/** Most issues that an error lists. */
const MOST_ISSUES = 100;

/**
 * Refuses what an extension gives where JSON, or its readers, would change a number.
 * @param field what the value is called, the first part of each path
 * @throws ExtensionError `bad_request` that lists each number
 */
export function refuseLost(field: string, lost: readonly LostNumber[]): void {
  const issues = lost.slice(0, MOST_ISSUES).map((each) => {
    return { field: [field, ...each.path].join('.'), issue: lostIssue(each) };
  });
  const [first] = issues;
  if (first === undefined) return;
  throw new ExtensionError('bad_request', `${first.field}: ${first.issue}`, { ...first, issues });
}
