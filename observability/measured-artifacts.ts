import { ArtifactError, type ArtifactStore } from '../domain/artifacts/artifact-store.ts';
import { decorate } from '../domain/decorate.ts';
import type { Telemetry } from './telemetry.ts';

/** Wraps an artifact store and counts its writes, removals and failures. */
export function measuredArtifacts(store: ArtifactStore, telemetry: Telemetry): ArtifactStore {
  const counted = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      const code = error instanceof ArtifactError ? error.code : 'UNKNOWN';
      telemetry.count('artifact_failures_total', { code: code.toLowerCase() });
      throw error;
    }
  };
  return decorate(store, {
    async put(runId, artifact, content) {
      await counted(store.put(runId, artifact, content));
      telemetry.count('artifacts_written_total');
      telemetry.count('artifact_bytes_written_total', {}, content.byteLength);
    },
    open: (runId, artifact) => counted(store.open(runId, artifact)),
    copy: (artifact, from, to) => counted(store.copy(artifact, from, to)),
    async remove(runId, artifact) {
      await counted(store.remove(runId, artifact));
      telemetry.count('artifacts_removed_total');
    },
  });
}
