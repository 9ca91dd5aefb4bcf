import { fromIso } from '../clock.ts';

/** The most tasks that one event may trigger. */
export const MAX_TRIGGERED = 5000;

/** The largest payload of a published event, in bytes of JSON. */
export const MAX_PUBLISHED_BYTES = 256 * 1024;

/** The id of a publication: `<milliseconds>-<revision in its topic's stream>`. */
export function streamIdOf(publishedAt: string, revision: number): string {
  return `${fromIso(publishedAt)}-${revision}`;
}
