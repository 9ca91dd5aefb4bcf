import type { ArtifactStore, StoredArtifact } from '../../domain/artifacts/artifact-store.ts';
import type { Instant } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { mapInBatches } from '../../domain/map-in-batches.ts';
import { streams } from '../../domain/streams.ts';

const CONCURRENCY = 25;

/**
 * Removes the artifacts of runs that were removed from the log. The log decides. An artifact to which no event refers,
 * because its writer died, is removed with its run. Artifacts of runs that this log never had are not touched.
 * @param before only artifacts older than this, as newer ones belong to runs that still exist
 * @param continues whether to continue
 * @returns how many were removed
 * @throws ArtifactError, EventStoreError; the rest is removed another time
 */
export async function removeArtifacts(
  artifacts: ArtifactStore,
  store: EventStore,
  before: Instant,
  continues: () => boolean,
): Promise<number> {
  let removed = 0;
  for await (const page of artifacts.list()) {
    const byRun = new Map<string, StoredArtifact[]>();
    for (const one of page.filter(({ modifiedAt }) => modifiedAt < before)) {
      const known = byRun.get(one.runId);
      if (known === undefined) byRun.set(one.runId, [one]);
      else known.push(one);
    }
    const runs = [...byRun.keys()];
    const gone = await mapInBatches(runs, CONCURRENCY, (id) => isRemoved(store, id));
    for (const [place, runId] of runs.entries()) {
      if (!continues()) return removed;
      if (gone[place] !== true) continue;
      const names = byRun.get(runId) ?? [];
      await mapInBatches(names, CONCURRENCY, ({ artifact }) => artifacts.remove(runId, artifact));
      removed += names.length;
    }
  }
  return removed;
}

async function isRemoved(store: EventStore, runId: string): Promise<boolean> {
  const options = { direction: 'backwards', limit: 1 } as const;
  const [last] = await store.readStream(streams.run(runId), options);
  return last?.type === 'RunRemoved';
}
