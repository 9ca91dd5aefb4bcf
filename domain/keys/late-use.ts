import { fromIso } from '../clock.ts';
import type { EventStore } from '../event-store.ts';
import type { KeyEvent } from '../events/catalogue.ts';
import { streams } from '../streams.ts';
import type { DedupeUse, KeyUse } from './dedupe.ts';
import type { KeyName, KeyState } from './key.ts';

/**
 * Events of a dedupe key that are left when older ones are cut off, and that are looked at for who comes late. Each
 * use is one, or two.
 */
export const USES_LEFT = 400;

/**
 * Whether a run comes late: the key was used for a later time already. The key's last event tells of that use alone, and
 * another one may lie within the window of this one.
 */
export function comesLate({ used }: KeyState, use: DedupeUse): boolean {
  return used !== null && used.run_id !== use.run_id && use.at < fromIso(used.at);
}

/**
 * The uses of a key that its stream tells of, each once, the latest written first.
 *
 * @param pending what is about to be appended, and does not stand there yet
 * @throws EventStoreError all that the log throws
 */
export async function usesTold(
  store: EventStore,
  { kind, owner, key }: KeyName,
  pending: readonly KeyEvent[],
): Promise<readonly KeyUse[]> {
  const page = { direction: 'backwards', limit: USES_LEFT, faulty: true } as const;
  const written = await store.readStream(streams.key(kind, owner, key), page);
  const sound = written.filter(({ fault }) => fault === undefined) as readonly unknown[];
  const told = [...pending.toReversed(), ...(sound as readonly KeyEvent[])];
  const uses = new Map<string, KeyUse>();
  for (const { data } of told) {
    if (data.used !== null && !uses.has(data.used.run_id)) uses.set(data.used.run_id, data.used);
  }
  return [...uses.values()];
}

/** Those that make a run a duplicate, as far as their runs count. */
export function usesWithin(
  uses: readonly KeyUse[],
  use: DedupeUse,
  windowSeconds: number,
): readonly KeyUse[] {
  return uses.filter(({ at }) => Math.abs(use.at - fromIso(at)) < windowSeconds * 1000);
}
