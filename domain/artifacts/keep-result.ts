import { writeJson } from '../exact-numbers.ts';
import { mapInBatches } from '../map-in-batches.ts';
import { MAX_RESULT_BYTES, jsonBytes, truncateTo, type Measured } from '../pipeline/json-size.ts';
import { artifactOf, artifactsIn } from './artifact.ts';
import { ArtifactError, type ArtifactStore } from './artifact-store.ts';

/** The place where results are stored that are too large for an event. */
export interface ArtifactKeeping {
  readonly store: ArtifactStore;
  /** Larger results are cut instead. 0: all results are cut. */
  readonly maxBytes: number;
  /**
   * Throws if a namespace may not store that many more bytes. Default: never throws.
   * @throws RefusalError `STATE_CONFLICT`
   */
  readonly requireRoom?: (namespace: string, bytes: number) => Promise<void>;
}

/** The run whose result is kept. */
interface KeepingRun {
  readonly id: string;
  readonly namespace: string;
}

/** The most artifacts copied at the same time. */
const CONCURRENT_COPIES = 16;

/**
 * Returns a result in a form that fits into an event: itself, or a reference to the artifact that it was written to.
 * @param keeping undefined: a result that does not fit is cut
 * @param result masked and plain JSON
 * @param limit the size in bytes from which it does not fit
 * @throws ArtifactError; RefusalError `STATE_CONFLICT` if the quota of the run's namespace is used up
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
 * Copies the artifacts that results refer to to another run, which is about to record the same results. Artifacts that
 * do not exist are skipped: they are gone, or a tool made up the reference.
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

/** Whether the failure of a write may be temporary. */
export function isArtifactOutage(error: unknown): error is ArtifactError {
  return error instanceof ArtifactError && error.code === 'UNAVAILABLE';
}
