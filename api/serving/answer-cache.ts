import { writeJson } from '../../domain/exact-numbers.ts';
import { WeighedCache } from '../../projections/reading/weighed-cache.ts';
import type { Answer } from '../endpoint.ts';

/** Limits per endpoint: cached answers, and their characters together. */
const MAX_ANSWERS = 10_000;
const MAX_CHARACTERS = 8 * 1024 * 1024;

/** Where an answer is cached. */
export interface CacheEntry {
  readonly key: string;
  /** Version of all that the answer is made from, looked up before that is read. */
  readonly version: string;
}

/** An answer as it is sent. */
export interface CachedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly json: string;
}

/** The answers of one endpoint, all of the same version. */
export class AnswerCache {
  readonly #answers = new WeighedCache<CachedAnswer>({
    entries: MAX_ANSWERS,
    weight: MAX_CHARACTERS,
    weigh: ({ json }) => json.length,
  });
  #version = '';

  find({ key, version }: CacheEntry): CachedAnswer | undefined {
    if (version === this.#version) return this.#answers.get(key);
    this.#answers.clear();
    this.#version = version;
    return undefined;
  }

  /** Keeps an answer, unless another version was looked up since. */
  keep({ key, version }: CacheEntry, { status = 200, headers = {}, body }: Answer): CachedAnswer {
    const answer = { status, headers, json: writeJson(body) };
    if (version === this.#version) this.#answers.set(key, answer);
    return answer;
  }
}
