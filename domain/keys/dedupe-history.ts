import { fromIso } from '../clock.ts';
import type { EventStore } from '../event-store.ts';
import type { KeyEvent } from '../events/catalogue.ts';
import { streams } from '../streams.ts';
import type { DedupeUse, KeyUse } from './dedupe.ts';
import type { KeyName, KeyState } from './key.ts';

/** How many events of a dedupe key truncation keeps, for runs that come late. Each use is one or two events. */
export const KEPT_DEDUPE_EVENTS = 400;

/**
 * Whether the key was already used for a later time. The last event carries that use alone, and an earlier use may lie
 * within the window of this one.
 */
export function isLateUse({ used }: KeyState, use: DedupeUse): boolean {
  return used !== null && used.run_id !== use.run_id && use.at < fromIso(used.at);
}

/**
 * The uses that a key's stream still records, each once, the latest written first.
 *
 * @param pending events that are about to be appended
 * @throws EventStoreError all errors of the log
 */
export async function recordedUses(
  store: EventStore,
  { kind, owner, key }: KeyName,
  pending: readonly KeyEvent[],
): Promise<readonly KeyUse[]> {
  const page = { direction: 'backwards', limit: KEPT_DEDUPE_EVENTS, faulty: true } as const;
  const written = await store.readStream(streams.key(kind, owner, key), page);
  const sound = written.filter(({ fault }) => fault === undefined) as readonly unknown[];
  const events = [...pending.toReversed(), ...(sound as readonly KeyEvent[])];
  return [...addUses(new Map(), events).values()];
}

/** Adds the uses that events carry, by run. The first use of a run counts. */
export function addUses(
  uses: Map<string, KeyUse>,
  events: readonly KeyEvent[],
): Map<string, KeyUse> {
  for (const { data } of events) {
    if (data.used !== null && !uses.has(data.used.run_id)) uses.set(data.used.run_id, data.used);
  }
  return uses;
}

/** The uses that make a run a duplicate, if their runs count. */
export function usesInWindow(
  uses: readonly KeyUse[],
  use: DedupeUse,
  windowSeconds: number,
): readonly KeyUse[] {
  return uses.filter(({ at }) => Math.abs(use.at - fromIso(at)) < windowSeconds * 1000);
}
