import { lostIssue, type LostNumber } from '../../../domain/exact-numbers.ts';
import { ExtensionError } from '../../contract.ts';

const MAX_ISSUES = 100;

/**
 * Rejects a value of an extension if JSON, or its readers, would change a number in it.
 * @param field name of the value, the first part of each path
 * @throws ExtensionError `bad_request` that lists each number
 */
export function rejectLostNumbers(field: string, lost: readonly LostNumber[]): void {
  const issues = lost.slice(0, MAX_ISSUES).map((each) => {
    return { field: [field, ...each.path].join('.'), issue: lostIssue(each) };
  });
  const [first] = issues;
  if (first === undefined) return;
  throw new ExtensionError('bad_request', `${first.field}: ${first.issue}`, { ...first, issues });
}
