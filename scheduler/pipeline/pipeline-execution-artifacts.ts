import { isArtifactOutage, keptResult } from '../../domain/artifacts/keep-result.ts';
import type { Measured } from '../../domain/pipeline/json-size.ts';
import type { Environment, Execution } from './execution.ts';

/** How often a write is attempted while the artifact store is unavailable. */
const MAX_TRIES = 6;

/** The pause after a failed try: doubled each time. Milliseconds. */
const FIRST_PAUSE = 500;

/**
 * Writes a large result to the artifact store. While the store is unavailable, it retries for a few seconds, because
 * the tool would otherwise have to be called again.
 * @param limit the size in bytes up to which the result stays unchanged
 * @param signal ends the pauses between tries
 * @throws ArtifactError; RefusalError `STATE_CONFLICT` if the quota of the namespace is used up
 */
export async function keepLargeResult(
  { runId: id, namespace }: Execution,
  { artifacts, clock, random = Math.random }: Environment,
  result: Measured,
  limit: number,
  signal: AbortSignal,
): Promise<Measured> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await keptResult(artifacts, { id, namespace }, result, limit);
    } catch (error) {
      if (!isArtifactOutage(error) || tried === MAX_TRIES || signal.aborted) throw error;
      const pause = (0.5 + 0.5 * random()) * FIRST_PAUSE * 2 ** (tried - 1);
      // An abort ends the pause; the next try is then the last.
      await clock.sleep(pause, signal).catch(() => {});
    }
  }
}
