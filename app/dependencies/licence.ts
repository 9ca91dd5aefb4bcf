/** Licences under which a dependency may be used, by their SPDX ids. */
const allowed: ReadonlySet<string> = new Set([
  ...['MIT', 'MIT-0', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', 'Zlib'],
  ...['BlueOak-1.0.0', 'CC0-1.0', 'Unlicense', 'Python-2.0', 'PSF-2.0', 'Unicode-3.0'],
  // Applies only to changes of its own files, which this project uses unchanged.
  'MPL-2.0',
]);

/**
 * Whether a licence expression (SPDX, such as `(MIT OR GPL-3.0)`) permits the use. One part of an OR suffices; an AND
 * needs all. An expression that cannot be read permits nothing, and neither does an exception (WITH).
 */
export function isAllowedLicence(expression: string): boolean {
  const tokens = expression.match(/[()]|[^\s()]+/g) ?? [];
  const parser = new Parser(tokens);
  const result = parser.either();
  return result && parser.isAtEnd;
}

class Parser {
  readonly #tokens: readonly string[];
  #at = 0;

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#tokens.length;
  }

  either(): boolean {
    let result = this.#both();
    while (this.#take('OR')) result = this.#both() || result;
    return result;
  }

  #both(): boolean {
    let result = this.#one();
    while (this.#take('AND')) result = this.#one() && result;
    return result;
  }

  #one(): boolean {
    if (this.#take('(')) {
      const result = this.either();
      return this.#take(')') && result;
    }
    const id = this.#tokens[this.#at] ?? '';
    this.#at += 1;
    return allowed.has(id);
  }

  #take(token: string): boolean {
    if (this.#tokens[this.#at] !== token) return false;
    this.#at += 1;
    return true;
  }
}
