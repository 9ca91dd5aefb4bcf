/** Replaces each lone surrogate by U+FFFD, since strict JSON parsers reject them. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}
