import { cutDocument } from '../../../projections/cut-document.ts';
import type { Cut } from '../../../projections/read-model.ts';
import { WeighedCache } from '../../../projections/reading/weighed-cache.ts';

/** Limits of the cache. */
const MAX_ENTRIES = 10_000;
const MAX_CHARACTERS = 4 * 1024 * 1024;

interface CutDocument {
  readonly position: string;
  readonly cut: string;
  readonly text: string;
}

/** Cuts a view's documents for lists, and caches the results. Cutting a large document takes milliseconds. */
export class CutDocumentCache {
  readonly #cache = new WeighedCache<CutDocument>({
    entries: MAX_ENTRIES,
    weight: MAX_CHARACTERS,
    weigh: ({ text }) => text.length,
  });

  /** @param position of the document; entries of other positions do not count @param text the whole document */
  cut(key: string, position: string, text: string, cut: Cut): string {
    // A cut document has at least a third as many characters as bytes.
    if (text.length * 3 <= cut.maxBytes) return text;
    const shape = JSON.stringify(cut);
    const known = this.#cache.get(key);
    if (known?.position === position && known.cut === shape) return known.text;
    const cutText = cutDocument(text, cut);
    if (cutText !== text) this.#cache.set(key, { position, cut: shape, text: cutText });
    return cutText;
  }
}
