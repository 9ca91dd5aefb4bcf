import { writeJson } from '../exact-numbers.ts';
import { mapInBatches } from '../map-in-batches.ts';
import { MAX_RESULT_BYTES, jsonBytes, truncateTo, type Measured } from '../pipeline/json-size.ts';
import { artifactOf, artifactsIn } from './artifact.ts';
import { ArtifactError, type ArtifactStore } from './artifact-store.ts';

/** Where results go that are too large for an event. */
export interface ArtifactKeeping {
  readonly store: ArtifactStore;
  /** Larger results are cut instead. 0: all are. */
  readonly maxBytes: number;
  /**
   * Throws where a namespace may not keep that many bytes more. Default: it may.
   * @throws RefusalError `STATE_CONFLICT`
   */
  readonly requireRoom?: (namespace: string, bytes: number) => Promise<void>;
}

/** The run whose result is kept. */
interface KeepingRun {
  readonly id: string;
  readonly namespace: string;
}

/** Artifacts that are copied at the same time. */
const CONCURRENT_COPIES = 16;

/**
 * A result as an event can hold it: itself if it fits, else a reference to the artifact that it was written to.
 * @param keeping undefined: what does not fit is cut
 * @param result masked and plain JSON
 * @param limit bytes from which on it does not fit
 * @throws ArtifactError; RefusalError `STATE_CONFLICT` where the quota of the run's namespace is used up
 */
export async function keptResult(
  keeping: ArtifactKeeping | undefined,
  run: KeepingRun,
  result: Measured,
  limit = MAX_RESULT_BYTES,
): Promise<Measured> {
  if (result.bytes <= limit) return result;
  const content = new TextEncoder().encode(writeJson(result.value));
  if (content.byteLength <= limit) return { value: result.value, bytes: content.byteLength };
  if (keeping === undefined || content.byteLength > keeping.maxBytes)
    return truncateTo(limit, result);
  const artifact = artifactOf(content);
  await keeping.requireRoom?.(run.namespace, content.byteLength);
  await keeping.store.put(run.id, artifact.artifact, content);
  return { value: artifact, bytes: jsonBytes(artifact) };
}

/**
 * Gives the artifacts that results refer to to another run, which is about to record the same results. Those that are
 * gone, or whose references a tool made up, are passed over.
 * @throws ArtifactError
 */
export async function copyArtifacts(
  keeping: ArtifactKeeping | undefined,
  results: unknown,
  from: string,
  to: string,
): Promise<void> {
  if (keeping === undefined) return;
  const { store } = keeping;
  const names = [...artifactsIn(results)];
  await mapInBatches(names, CONCURRENT_COPIES, (name) => store.copy(name, from, to));
}

/** Whether the failure may pass. */
export function isArtifactOutage(error: unknown): error is ArtifactError {
  return error instanceof ArtifactError && error.code === 'UNAVAILABLE';
}
