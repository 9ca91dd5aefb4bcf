import { ExtensionError } from '../contract.ts';
import type { Parameters } from './service-requests.ts';

/** Maximum length of a string. Characters. */
const MAX_LENGTH = 200;

/** Reads a body and collects everything that is wrong with it. Inside an invalid part, nothing more is reported. */
export class BodyReading {
  readonly #issues: { readonly field: string; readonly issue: string }[] = [];

  /** Reads an object; null if it is not one. @param known the allowed fields. Default: any */
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

  /** Reads a string of 1 to 200 characters. */
  text(within: Parameters | null, name: string, field: string): string {
    const value = within?.[name];
    if (within === null) return '';
    if (typeof value === 'string' && value !== '' && isShort(value)) return value;
    const tooLong = typeof value === 'string' && value !== '';
    const issue = tooLong ? `has more than ${MAX_LENGTH} characters` : 'must be a string';
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

/** Counts characters as JSON Schema does: a surrogate pair is one. */
const isShort = (text: string): boolean =>
  text.length <= 2 * MAX_LENGTH && [...text].length <= MAX_LENGTH;
