import { unescape } from './escapes.ts';
import { wellFormed } from './well-formed.ts';

/** Levels of escapes that are taken away: of HTML in JSON that stands as a text in other JSON, say. */
export const MOST_LEVELS = 3;

/** What is left of a secret is looked for if it has as many characters: less stands in many a text that holds none. */
const LEAST_LEFT = 8;

/** The same of what is shorter by white space alone, and of a piece of Base64. */
const LEAST_PIECE = 4;

/**
 * All that a secret's value may have become by the time in which it is shown: itself, without the white space that
 * headers and addresses lose, as an address and a host have it, and in Base64. They are looked for where escapes were
 * taken away, too: each has to be here as it is then.
 */
export function formsOf(secret: string): readonly string[] {
  const withoutLines = secret.replace(/[\t\n\r]/g, '');
  const shorter = [secret.trim(), withoutLines, withoutLines.trim()];
  const values = [secret, ...shorter.filter(({ length }) => length >= LEAST_PIECE)];
  const forms = values.flatMap((value) => {
    const least = Math.min(LEAST_LEFT, value.length);
    const written = [value, inJson(value), ...inAddress(value)].flatMap(withoutEscapes);
    const long = written.filter(({ length }) => length >= least);
    return [...long, ...inHost(value), ...inBase64(value)];
  });
  return [...new Set(forms)];
}

/** A text as it is, and as it is where its own escapes were taken away together with those of what it stands in. */
function withoutEscapes(text: string): readonly string[] {
  const texts = [text];
  for (let level = 0, last = unescape(text); last && level < MOST_LEVELS; level += 1) {
    texts.push(last.text);
    last = unescape(last.text);
  }
  return texts;
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/**
 * How a text stands in an address: in its path, in its query, and as a parameter. Each changes other characters, and
 * loses some (`..`, tabs).
 */
function inAddress(text: string): readonly string[] {
  return [
    new URL(`http://a/${text}`).href.slice('http://a/'.length),
    new URL(`http://a/?${text}`).href.slice('http://a/?'.length),
    new URLSearchParams([['', text]]).toString().slice('='.length),
    encodeURIComponent(wellFormed(text)),
  ];
}

/**
 * How a text stands in an address that begins with it: in lower case, in Punycode, and up to the first character that
 * ends a host. Where it is a part of a name that is not ASCII, Punycode hides it in that.
 */
function inHost(text: string): readonly string[] {
  const address = `http://${text}`;
  if (!URL.canParse(address)) return [];
  const { hostname } = new URL(address);
  return hostname.length < LEAST_LEFT ? [] : [hostname];
}

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
