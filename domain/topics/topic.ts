import { fromIso } from '../clock.ts';

/** Most tasks that one event may trigger. */
export const MAX_TRIGGERED = 5000;

/** Longest payload of a published event, as JSON text. */
export const MAX_PUBLISHED_BYTES = 256 * 1024;

/** `<millis>-<seq>`: when it was published, and its place within its topic's stream. */
export function streamIdOf(publishedAt: string, revision: number): string {
  return `${fromIso(publishedAt)}-${revision}`;
}
