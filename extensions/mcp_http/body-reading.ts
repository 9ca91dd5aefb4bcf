import { ExtensionError } from '../contract.ts';
import type { Parameters } from './service-tools.ts';

/** Most characters of a text. */
const LONGEST = 200;

/** Reads a body, and remembers all that is wrong with it. What stands in a part that is at fault is no fault of its own. */
export class BodyReading {
  readonly #issues: { readonly field: string; readonly issue: string }[] = [];

  /** An object; null: it is none. @param known no other fields may be in it; left out: any may */
  object(value: unknown, field: string, known?: readonly string[]): Parameters | null {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.#issues.push({ field, issue: 'must be an object' });
      return null;
    }
    for (const name of Object.keys(value)) {
      if (known === undefined || known.includes(name)) continue;
      const path = field === 'body' ? name : `${field}.${name}`;
      this.#issues.push({ field: path, issue: 'is not a known field' });
    }
    return value as Parameters;
  }

  /** A text of 1 to 200 characters. */
  text(within: Parameters | null, name: string, field: string): string {
    const value = within?.[name];
    if (within === null) return '';
    if (typeof value === 'string' && value !== '' && isShort(value)) return value;
    const tooLong = typeof value === 'string' && value !== '';
    const issue = tooLong ? `has more than ${LONGEST} characters` : 'must be a text';
    this.#issues.push({ field, issue });
    return '';
  }

  /** @throws ExtensionError `bad_request` that lists every fault */
  end(): void {
    const issues = this.#issues.slice(0, 100);
    const [first] = issues;
    if (first === undefined) return;
    const details = { ...first, issues };
    throw new ExtensionError('bad_request', `${first.field}: ${first.issue}`, details);
  }
}

/** Characters are counted as the description counts them: a pair of surrogates is one. */
const isShort = (text: string): boolean =>
  text.length <= 2 * LONGEST && [...text].length <= LONGEST;
