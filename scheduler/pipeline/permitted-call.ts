import { notPermitted, type Denial } from '../../domain/agents/permissions.ts';
import type { Environment } from './execution.ts';

/**
 * Does something for a run if its agent permits it. Checked each time, because the agent may have lost its rights or
 * been disabled since the run started.
 * @param refuse returns the outcome for a denial
 */
export function unlessDenied<T>(
  { denial: ask }: Pick<Environment, 'denial'>,
  work: () => T,
  refuse: (message: string) => T,
): T | Promise<T> {
  const denying = ask?.() ?? null;
  const decide = (denial: Denial | null): T =>
    denial === null ? work() : refuse(notPermitted(denial));
  return denying instanceof Promise ? denying.then(decide) : decide(denying);
}
