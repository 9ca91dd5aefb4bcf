/** Replaces each lone surrogate by U+FFFD, because strict JSON parsers reject them. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}
