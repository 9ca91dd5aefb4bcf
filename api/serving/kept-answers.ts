import { writeJson } from '../../domain/exact-numbers.ts';
import { WeighedCache } from '../../projections/reading/weighed-cache.ts';
import type { Answer } from '../endpoint.ts';

/** How many answers of an endpoint are kept, and of how many characters together. */
const MOST = 10_000;
const MOST_CHARACTERS = 8 * 1024 * 1024;

/** An answer as it is sent. */
export interface KeptAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The body. */
  readonly text: string;
}

/** The answers of one endpoint, for as long as what they follow from is as it was. */
export class KeptAnswers {
  readonly #answers = new WeighedCache<KeptAnswer>({
    entries: MOST,
    weight: MOST_CHARACTERS,
    weigh: ({ text }) => text.length,
  });
  #version = '';

  /** @param version of all that the answer follows from, as it is now */
  find(key: string, version: string): KeptAnswer | undefined {
    if (version === this.#version) return this.#answers.get(key);
    this.#answers.clear();
    this.#version = version;
    return undefined;
  }

  /**
   * Keeps an answer, unless another version was asked for since.
   * @param version that was looked at before what the answer is made from was read
   */
  keep(key: string, version: string, answer: Answer): KeptAnswer {
    const { status = 200, headers = {}, body } = answer;
    const kept = { status, headers, text: writeJson(body) };
    if (version === this.#version) this.#answers.set(key, kept);
    return kept;
  }
}
