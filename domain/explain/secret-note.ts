import type { Instant } from '../clock.ts';
import type { JsonObject } from '../json.ts';
import { compilePipeline } from '../pipeline/compile.ts';
import type { ExplainContext } from './explain-context.ts';
import { note, NO_NOTE, joined, type Note } from './explanation.ts';

/** When secrets expire, by name; secrets that never expire are left out. */
export type ExpiryFinder = (names: readonly string[]) => Promise<ReadonlyMap<string, Instant>>;

/** The secrets of the task's pipeline that will have expired when a fire that is still to come runs. */
export async function expiringSecretsNote(
  { history, now, words }: ExplainContext,
  fire: Instant,
  findExpiries: ExpiryFinder | undefined,
): Promise<Note> {
  if (findExpiries === undefined || fire <= now || history.canceled !== null) return NO_NOTE;
  const { secretNames } = compilePipeline(history.task.definition.payload as JsonObject);
  if (secretNames.length === 0) return NO_NOTE;
  const expiries = [...(await findExpiries(secretNames))].filter(([, at]) => at <= fire);
  return joined(
    ...expiries.map(([name, at]) => {
      const when = at <= now ? `expired at ${words.when(at)}` : `will expire at ${words.when(at)}`;
      return note(`The secret ${name} ${when}: steps that use it fail until it is set again.`);
    }),
  );
}
