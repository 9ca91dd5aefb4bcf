import { RefusalError } from '../errors.ts';
import type { SeenRevision } from '../handle.ts';

/** The most attempts of a change of several appends that other changes of the agent overtake. */
const MAX_ATTEMPTS = 6;

/**
 * Repeats a change of several appends while other changes of the agent overtake it, unless the caller gave the revision
 * that it saw.
 * @throws RefusalError `STATE_CONFLICT` after six attempts; errors of the change
 */
export async function whileOvertaken<T>(
  agentId: string,
  expectedRevision: SeenRevision | undefined,
  change: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await change();
    } catch (error) {
      const isOvertaken = error instanceof RefusalError && error.code === 'REVISION_MISMATCH';
      if (!isOvertaken || expectedRevision !== undefined) throw error;
      if (attempt < MAX_ATTEMPTS) continue;
      const message = 'other requests keep changing the agent; try again';
      throw new RefusalError('STATE_CONFLICT', message, { agent_id: agentId });
    }
  }
}
