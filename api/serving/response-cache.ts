import { writeJson } from '../../domain/exact-numbers.ts';
import { WeighedCache } from '../../projections/reading/weighed-cache.ts';
import type { EndpointResponse } from '../endpoint.ts';

/** Limits per endpoint: the number of cached responses, and their total characters. */
const MAX_RESPONSES = 10_000;
const MAX_CHARACTERS = 8 * 1024 * 1024;

/** The place of a response in the cache. */
export interface CacheEntry {
  readonly key: string;
  /** The version of all sources of the response, looked up before they are read. */
  readonly version: string;
}

/** A response in the form in which it is sent. */
export interface CachedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly json: string;
}

/** The responses of one endpoint, all of the same version. */
export class ResponseCache {
  readonly #responses = new WeighedCache<CachedResponse>({
    entries: MAX_RESPONSES,
    weight: MAX_CHARACTERS,
    weigh: ({ json }) => json.length,
  });
  #version = '';

  find({ key, version }: CacheEntry): CachedResponse | undefined {
    if (version === this.#version) return this.#responses.get(key);
    this.#responses.clear();
    this.#version = version;
    return undefined;
  }

  /** Keeps a response, unless another version has been looked up since. */
  keep(
    { key, version }: CacheEntry,
    { status = 200, headers = {}, body }: EndpointResponse,
  ): CachedResponse {
    const response = { status, headers, json: writeJson(body) };
    if (version === this.#version) this.#responses.set(key, response);
    return response;
  }
}
