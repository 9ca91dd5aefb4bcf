import { unescape, type Unescaped } from './escapes.ts';
import { PipelineFault } from './fault.ts';
import { setOwn } from './own.ts';
import { formsOf, MOST_LEVELS } from './secret-forms.ts';

/** What stands where a secret's value stood. */
export const MASK = '***';

/**
 * What `secrets` is in an expression: secrets are looked up one by one, by name, and can't be listed.
 * Every value given out is remembered, so that it can be masked.
 */
export class Secrets {
  readonly #lookUp: (name: string) => string | undefined;
  readonly #given = new Set<string>();
  /** All that is looked for. */
  #forms: readonly string[] = [];
  /** Length of the shortest of them; infinite where there are none. */
  #shortest = Infinity;

  constructor(lookUp: (name: string) => string | undefined) {
    this.#lookUp = lookUp;
  }

  /** @throws PipelineFault when there is no such secret, naming it */
  get(name: string): string {
    const value = this.#lookUp(name);
    if (value === undefined) throw new PipelineFault(`there is no secret ${name}`);
    this.remember(value);
    return value;
  }

  /** Masks this secret too, if there is one, though it has not been used yet: an earlier worker may have. */
  expect(name: string): void {
    const value = this.#lookUp(name);
    if (value !== undefined) this.remember(value);
  }

  /**
   * Puts `***` for every secret's value in a text, also where it is escaped for JSON, HTML or an address, is part of one,
   * or is in Base64. Takes time by the text's length and the number of secrets.
   */
  maskText(text: string): string {
    if (text.length < this.#shortest) return text;
    const places = this.placesIn(text);
    if (places.length === 0) return text;
    let masked = '';
    let from = 0;
    for (const place of united(places)) {
      masked += text.slice(from, place.from) + MASK;
      from = place.to;
    }
    return masked + text.slice(from);
  }

  /** The same for every text and key within a JSON value. What holds no secret is given back as it is. */
  mask(value: unknown): unknown {
    if (this.#forms.length === 0) return value;
    switch (typeof value) {
      case 'string':
        return this.maskText(value);
      case 'number':
        return this.#forms.includes(String(value)) ? MASK : value;
      case 'object':
        if (value === null) return null;
        if (Array.isArray(value)) return value.map((item: unknown) => this.mask(item));
        return this.maskObject(value);
      default:
        return value;
    }
  }

  private maskObject(value: object): object {
    const masked: Record<string, unknown> = {};
    for (const [key, member] of Object.entries(value)) {
      setOwn(masked, this.maskText(key), this.mask(member));
    }
    return masked;
  }

  private remember(value: string): void {
    if (value === '' || this.#given.has(value)) return;
    this.#given.add(value);
    const known = new Set([...this.#forms, ...formsOf(value)]);
    this.#forms = [...known];
    this.#shortest = Math.min(...this.#forms.map(({ length }) => length));
  }

  /** Where secrets stand in a text, in no order; what is found behind escapes, too, is in it several times. */
  private placesIn(text: string): readonly Place[] {
    const places = this.placesOfForms(text);
    const around: Unescaped[] = [];
    let looked = text;
    while (around.length < MOST_LEVELS && looked.length >= this.#shortest) {
      const unescaped = unescape(looked);
      if (unescaped === null) break;
      around.unshift(unescaped);
      looked = unescaped.text;
      const before = (place: number): number =>
        around.reduce((inner, level) => level.placeBefore(inner), place);
      for (const { from, to } of this.placesOfForms(looked)) {
        places.push({ from: before(from), to: before(to) });
      }
    }
    return places;
  }

  private placesOfForms(text: string): Place[] {
    const places: Place[] = [];
    for (const form of this.#forms) {
      let at = text.indexOf(form);
      for (; at !== -1; at = text.indexOf(form, at + form.length)) {
        places.push({ from: at, to: at + form.length });
      }
    }
    return places;
  }
}

/** A part of a text. */
interface Place {
  readonly from: number;
  /** Behind its last character. */
  readonly to: number;
}

/** Those that share characters are made one. */
function united(places: readonly Place[]): readonly Place[] {
  const apart: Place[] = [];
  for (const place of places.toSorted((one, other) => one.from - other.from)) {
    const last = apart.at(-1);
    if (last === undefined || place.from >= last.to) apart.push(place);
    else apart[apart.length - 1] = { from: last.from, to: Math.max(last.to, place.to) };
  }
  return apart;
}
