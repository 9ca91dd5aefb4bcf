const textTypes = /^\s*(text\/|[^;]*[/+](json|xml|javascript)\b)/i;

/** 0x80 to 0x9f in windows-1252, which Node 20 decodes as control characters. */
const windows1252 =
  '\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f' +
  '\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178';

/** Charsets whose byte order mark decides (RFC 2781, 4.3). */
const bomCharsets = new Set(['utf-16', 'unicode', 'ucs-2', 'iso-10646-ucs-2', 'csunicode']);

/**
 * Decodes bytes in the charset that the content type names. Without a charset, a text type with a byte order mark of
 * UTF-16 is decoded in UTF-16, and anything else in UTF-8. An unknown charset counts as none. The mark is not part of
 * the string.
 * @param options.isCut the bytes may end within a character, which is left out
 * @returns null if the bytes are not valid in the charset
 */
export function decodeText(
  bytes: Buffer,
  contentType: string,
  { isCut }: { readonly isCut: boolean },
): string | null {
  try {
    return decoderFor(bytes, contentType, { fatal: true })(bytes, isCut);
  } catch {
    return null;
  }
}

/** Like {@link decodeText}, with U+FFFD for invalid bytes. */
export function decodeTextLossy(bytes: Buffer, contentType: string): string {
  return decoderFor(bytes, contentType, { fatal: false })(bytes, true);
}

function decoderFor(
  bytes: Buffer,
  contentType: string,
  options: { readonly fatal: boolean },
): (bytes: Buffer, isCut: boolean) => string {
  let decoder = new TextDecoder('utf-8', options);
  try {
    decoder = new TextDecoder(charsetOf(bytes, contentType), options);
  } catch {
    // An unknown charset.
  }
  return (given, isCut) => {
    const text = decoder.decode(given, { stream: isCut });
    if (decoder.encoding !== 'windows-1252') return text;
    return text.replace(/[\x80-\x9f]/g, (each) => windows1252.charAt(each.charCodeAt(0) - 0x80));
  };
}

function charsetOf(bytes: Buffer, contentType: string): string | undefined {
  const named = /;\s*charset\s*=\s*["']?([^\s;"']+)/i.exec(contentType)?.[1]?.toLowerCase();
  const [first, second] = bytes;
  const isBig = first === 0xfe && second === 0xff;
  if (named !== undefined) return isBig && bomCharsets.has(named) ? 'utf-16be' : named;
  if (!textTypes.test(contentType)) return undefined;
  if (isBig) return 'utf-16be';
  return first === 0xff && second === 0xfe ? 'utf-16le' : undefined;
}
