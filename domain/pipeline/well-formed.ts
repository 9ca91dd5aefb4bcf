/** Puts U+FFFD for each half of a character: strict readers of JSON refuse a text that has one. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}
