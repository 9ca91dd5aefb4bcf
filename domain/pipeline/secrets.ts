import { isArtifact } from '../artifacts/artifact.ts';
import { decodeEscapes, type DecodedString } from './escape-decoding.ts';
import { setOwn } from './set-own.ts';
import { formsOf, MAX_ESCAPE_LEVELS } from './secret-forms.ts';

/** Replaces a secret's value. */
export const MASK = '***';

/** The values to mask wherever they appear. This is the second line of defence; the first is `placed-secrets.ts`. */
export class Secrets {
  readonly #given = new Set<string>();
  /** All forms to mask. */
  #forms: readonly string[] = [];
  /** Length of the shortest form; infinite if there are none. */
  #shortest = Infinity;

  constructor(values: Iterable<string> = []) {
    for (const value of values) this.hide(value);
  }

  /** Masks a value from now on. */
  hide(value: string): void {
    if (value === '' || this.#given.has(value)) return;
    this.#given.add(value);
    const known = new Set([...this.#forms, ...formsOf(value)]);
    this.#forms = [...known];
    this.#shortest = Math.min(...this.#forms.map(({ length }) => length));
  }

  /**
   * Replaces every secret's value in a string by `***`, even if it is escaped for JSON, HTML or a
   * URL, or encoded in Base64. The time is proportional to the string's length and the number of
   * secrets.
   */
  maskText(text: string): string {
    if (text.length < this.#shortest) return text;
    const ranges = this.#rangesIn(text);
    if (ranges.length === 0) return text;
    let masked = '';
    let from = 0;
    for (const range of merged(ranges)) {
      masked += text.slice(from, range.from) + MASK;
      from = range.to;
    }
    return masked + text.slice(from);
  }

  /** Masks every string and key within a JSON value. Values without secrets stay unchanged. */
  mask(value: unknown): unknown {
    if (this.#forms.length === 0) return value;
    switch (typeof value) {
      case 'string':
        return this.maskText(value);
      case 'number':
        return this.#forms.includes(String(value)) ? MASK : value;
      case 'object':
        // The digits of a reference are random, so a short secret may occur in them by chance.
        if (value === null || isArtifact(value)) return value;
        if (Array.isArray(value)) return value.map((item: unknown) => this.mask(item));
        return this.#maskObject(value);
      default:
        return value;
    }
  }

  #maskObject(value: object): object {
    const masked: Record<string, unknown> = {};
    for (const [key, member] of Object.entries(value)) {
      setOwn(masked, this.maskText(key), this.mask(member));
    }
    return masked;
  }

  /** The positions of secrets in a string, unordered and possibly overlapping. */
  #rangesIn(text: string): readonly Range[] {
    const ranges = this.#rangesOfForms(text);
    const levels: DecodedString[] = [];
    let decoded = text;
    while (levels.length < MAX_ESCAPE_LEVELS && decoded.length >= this.#shortest) {
      const unescaped = decodeEscapes(decoded);
      if (unescaped === null) break;
      levels.unshift(unescaped);
      decoded = unescaped.text;
      const original = (position: number): number =>
        levels.reduce((inner, level) => level.originalPosition(inner), position);
      for (const { from, to } of this.#rangesOfForms(decoded)) {
        ranges.push({ from: original(from), to: original(to) });
      }
    }
    return ranges;
  }

  #rangesOfForms(text: string): Range[] {
    const ranges: Range[] = [];
    for (const form of this.#forms) {
      let at = text.indexOf(form);
      for (; at !== -1; at = text.indexOf(form, at + form.length)) {
        ranges.push({ from: at, to: at + form.length });
      }
    }
    return ranges;
  }
}

/** A range of a string. */
interface Range {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

/** Merges overlapping ranges. */
function merged(ranges: readonly Range[]): readonly Range[] {
  const result: Range[] = [];
  for (const range of ranges.toSorted((one, other) => one.from - other.from)) {
    const last = result.at(-1);
    if (last === undefined || range.from >= last.to) result.push(range);
    else result[result.length - 1] = { from: last.from, to: Math.max(last.to, range.to) };
  }
  return result;
}
