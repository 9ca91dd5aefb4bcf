/** Most sentences that are kept of one kind. */
const MAX_KEPT = 2_000;

/** Keeps the newest answers of a pure function, which is asked for the same few again and again. */
export function keptWords(work: (asked: string) => string): (asked: string) => string {
  const kept = new Map<string, string>();
  return (asked) => {
    const known = kept.get(asked);
    if (known !== undefined) return known;
    const words = work(asked);
    if (kept.size >= MAX_KEPT) {
      const [oldest] = kept.keys();
      if (oldest !== undefined) kept.delete(oldest);
    }
    kept.set(asked, words);
    return words;
  };
}
