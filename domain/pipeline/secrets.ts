import { PipelineFault } from './fault.ts';
import { setOwn } from './own.ts';

/** What stands where a secret's value stood. */
const MASK = '***';

/**
 * What `secrets` is in an expression: secrets are looked up one by one, by name, and can't be listed.
 * Every value given out is remembered, so that it can be masked.
 */
export class Secrets {
  readonly #lookUp: (name: string) => string | undefined;
  readonly #given = new Set<string>();
  #pieces: readonly string[] = [];

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

  /** Puts `***` for every secret's value in a text, also where it is escaped for JSON or a URL, or in Base64. */
  maskText(text: string): string {
    let masked = text;
    for (const piece of this.#pieces) {
      if (masked.includes(piece)) masked = masked.replaceAll(piece, MASK);
    }
    return masked;
  }

  /** The same for every text and key within a JSON value. What holds no secret is given back as it is. */
  mask(value: unknown): unknown {
    if (this.#pieces.length === 0) return value;
    switch (typeof value) {
      case 'string':
        return this.maskText(value);
      case 'number':
        return this.#given.has(String(value)) ? MASK : value;
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
    const forms = [...this.#given].flatMap((secret) => [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret.replace(/\p{Surrogate}/gu, '\ufffd')),
      ...inAddress(secret),
      ...inBase64(secret),
    ]);
    // Longer ones first: a secret may be part of another.
    this.#pieces = [...new Set(forms)].sort((one, other) => other.length - one.length);
  }
}

/**
 * How a text stands in an address: in its path, in its query, and as a parameter. Each escapes other characters. What a
 * path loses by that (`..`, tabs) leaves less than there was, which would be found where no secret is.
 */
function inAddress(text: string): readonly string[] {
  const forms = [
    new URL(`http://a/${text}`).href.slice('http://a/'.length),
    new URL(`http://a/?${text}`).href.slice('http://a/?'.length),
    new URLSearchParams([['', text]]).toString().slice('='.length),
  ];
  return forms.filter(({ length }) => length >= text.length);
}

/** A piece of Base64 that is shorter than this stands in many a text that holds no secret. Characters. */
const LEAST_PIECE = 4;

/**
 * Base64 of the text in UTF-8, by itself and within a longer text, as in a header with a user and a password: there the
 * characters depend on where in a group of three bytes it begins, and those at its ends on what stands beside it, too.
 * Of both alphabets.
 */
function inBase64(text: string): readonly string[] {
  const bytes = new TextEncoder().encode(text);
  const within = [0, 1, 2].flatMap((before) => {
    const whole = base64(new Uint8Array([...new Uint8Array(before), ...bytes]));
    const piece = whole.slice(
      Math.ceil((before * 8) / 6),
      Math.floor(((before + bytes.length) * 8) / 6),
    );
    return piece.length < LEAST_PIECE ? [] : [piece];
  });
  const standard = [base64(bytes), ...within];
  return [...standard, ...standard.map((each) => each.replaceAll('+', '-').replaceAll('/', '_'))];
}

/** Without the padding that depends on what follows. */
function base64(bytes: Uint8Array): string {
  let characters = '';
  for (const byte of bytes) characters += String.fromCharCode(byte);
  return btoa(characters).replace(/=+$/, '');
}
