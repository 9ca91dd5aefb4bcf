import type { ApiClient } from '../../support/api-client.ts';
import { found } from '../../support/signals.ts';

/** The least result of {@link slowAfter}. Seconds. */
const MIN_SECONDS = 2;

interface Step {
  readonly started_at: string;
  readonly finished_at: string;
}

/**
 * How long a step must take to be slow after these runs of its task, even if a busy machine delayed one of them.
 * Resolves once all of them have succeeded.
 * @param runs their ids
 * @returns seconds
 */
export async function slowAfter(client: ApiClient, runs: readonly string[]): Promise<number> {
  let longest = 0;
  for (const id of runs) {
    const { json } = await found(async () => {
      const run = await client.get(`/runs/${id}`);
      return run.at('state') === 'succeeded' ? run : null;
    });
    for (const { started_at, finished_at } of json['steps'] as readonly Step[]) {
      longest = Math.max(longest, (Date.parse(finished_at) - Date.parse(started_at)) / 1000);
    }
  }
  return Math.max(MIN_SECONDS, 2 * longest + 0.5);
}
