/**
 * The port of the store of artifacts: results that are too large for an event. Two adapters implement it
 * (`stores/artifacts/file-artifacts.ts`, `stores/artifacts/s3-artifacts.ts`); one contract suite
 * (`test/contracts/artifact-store.ts`) tests both.
 *
 * An artifact belongs to a run and is named by the SHA-256 of its content, so writing it again changes nothing. It is
 * written before the event that refers to it. A crash in between leaves an artifact without a reference, never the
 * reverse.
 *
 * All methods throw ArtifactError.
 */
export interface ArtifactStore {
  /** Writes an artifact. It is durable once this resolves, and never partly readable. */
  put(runId: string, artifact: string, content: Uint8Array): Promise<void>;

  /** Opens an artifact for reading; null if there is none. The caller must read the whole artifact or close it. */
  open(runId: string, artifact: string): Promise<OpenArtifact | null>;

  /** Copies an artifact to another run. @returns false if there is none */
  copy(artifact: string, from: string, to: string): Promise<boolean>;

  /** Removes an artifact, if there is one. */
  remove(runId: string, artifact: string): Promise<void>;

  /** All artifacts, in pages. Artifacts written or removed during the read may be missing. */
  list(): AsyncIterable<readonly StoredArtifact[]>;

  /** Checks whether the store can be used. Changes nothing. */
  check(): Promise<void>;

  close(): Promise<void>;
}

export interface OpenArtifact {
  readonly sizeBytes: number;
  /** The content, which can be read only once. */
  readonly chunks: AsyncIterable<Uint8Array>;
  close(): void;
}

export interface StoredArtifact {
  readonly runId: string;
  readonly artifact: string;
  /** When it was last written. Milliseconds since 1970. */
  readonly modifiedAt: number;
}

export type ArtifactErrorCode =
  /** The store does not respond, rejects the request, or is full. Whether anything was written is unknown. */
  | 'UNAVAILABLE'
  /** The content differs from the content that was written. */
  | 'DAMAGED';

/** An error of the store of artifacts. Its message has the problem and the remedy. */
export class ArtifactError extends Error {
  readonly code: ArtifactErrorCode;
  readonly problem: string;
  /** The remedy for the operator. */
  readonly remedy: string;

  constructor(code: ArtifactErrorCode, problem: string, remedy: string, cause?: unknown) {
    super(`${problem}: ${remedy}`, cause === undefined ? undefined : { cause });
    this.name = 'ArtifactError';
    this.code = code;
    this.problem = problem;
    this.remedy = remedy;
  }
}
