import { decodeEscapes } from './escape-decoding.ts';
import { wellFormed } from './well-formed.ts';

/** Levels of escapes to decode, such as HTML in a JSON string within other JSON. */
export const MAX_ESCAPE_LEVELS = 3;

/** The fewest characters of a shortened form; shorter ones appear in unrelated strings. */
const MIN_FORM_LENGTH = 8;

/** The same for forms without white space and for parts of Base64. */
const MIN_PIECE_LENGTH = 4;

/**
 * All forms in which a secret's value may appear: itself, without the white space that headers and
 * URLs drop, as part of a URL or a host, and in Base64. Masking also searches decoded strings, so
 * each form is included with its own escapes decoded.
 */
export function formsOf(secret: string): readonly string[] {
  const withoutLines = secret.replace(/[\t\n\r]/g, '');
  const shorter = [secret.trim(), withoutLines, withoutLines.trim()];
  const values = [secret, ...shorter.filter(({ length }) => length >= MIN_PIECE_LENGTH)];
  const forms = values.flatMap((value) => {
    const least = Math.min(MIN_FORM_LENGTH, value.length);
    const written = [value, inJson(value), ...inUrl(value)].flatMap(withoutEscapes);
    const long = written.filter(({ length }) => length >= least);
    return [...long, ...inHost(value), ...inBase64(value)];
  });
  return [...new Set(forms)];
}

/** A string, and the same with its own escapes decoded, level by level. */
function withoutEscapes(text: string): readonly string[] {
  const texts = [text];
  for (let level = 0, last = decodeEscapes(text); last && level < MAX_ESCAPE_LEVELS; level += 1) {
    texts.push(last.text);
    last = decodeEscapes(last.text);
  }
  return texts;
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** A string in a URL's path, query and parameters, which escape and drop different characters. */
function inUrl(text: string): readonly string[] {
  return [
    new URL(`http://a/${text}`).href.slice('http://a/'.length),
    new URL(`http://a/?${text}`).href.slice('http://a/?'.length),
    new URLSearchParams([['', text]]).toString().slice('='.length),
    encodeURIComponent(wellFormed(text)),
  ];
}

/**
 * A string as the host of a URL: in lower case, in Punycode, and up to the first character that
 * ends a host. As part of a longer non-ASCII name, Punycode hides it.
 */
function inHost(text: string): readonly string[] {
  const address = `http://${text}`;
  if (!URL.canParse(address)) return [];
  const { hostname } = new URL(address);
  return hostname.length < MIN_FORM_LENGTH ? [] : [hostname];
}

/**
 * Base64 of the string in UTF-8, alone and within a longer string (such as user and password in a
 * header), in both alphabets. Within a longer string, the characters depend on the alignment to
 * three bytes, and those at its ends also on the neighbors.
 */
function inBase64(text: string): readonly string[] {
  const bytes = new TextEncoder().encode(text);
  const within = [0, 1, 2].flatMap((before) => {
    const whole = base64(new Uint8Array([...new Uint8Array(before), ...bytes]));
    const piece = whole.slice(
      Math.ceil((before * 8) / 6),
      Math.floor(((before + bytes.length) * 8) / 6),
    );
    return piece.length < MIN_PIECE_LENGTH ? [] : [piece];
  });
  const standard = [base64(bytes), ...within];
  return [...standard, ...standard.map((each) => each.replaceAll('+', '-').replaceAll('/', '_'))];
}

/** Drops the padding, which depends on what follows. */
function base64(bytes: Uint8Array): string {
  let characters = '';
  for (const byte of bytes) characters += String.fromCharCode(byte);
  return btoa(characters).replace(/=+$/, '');
}
