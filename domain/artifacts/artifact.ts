import { sha256 } from '../ids.ts';

/** The reference that replaces a result which is stored as an artifact. */
export interface Artifact {
  /** Its name within the run: the SHA-256 of its content. */
  readonly artifact: string;
  /** The size of its JSON in UTF-8. */
  readonly size_bytes: number;
  readonly sha256: string;
}

const NAME = /^[0-9a-f]{64}$/;

/** Whether a string can name an artifact. It is then safe in a path. */
export function isArtifactName(text: string): boolean {
  return NAME.test(text);
}

/** The reference to a content. */
export function artifactOf(content: Uint8Array): Artifact {
  const digest = sha256(content);
  return { artifact: digest, size_bytes: content.byteLength, sha256: digest };
}

/** Whether a value is such a reference. A tool may return a similar object, so the artifact may not exist. */
export function isArtifact(value: unknown): value is Artifact {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 3) return false;
  const { artifact, size_bytes, sha256: digest } = value as Record<keyof Artifact, unknown>;
  return (
    typeof artifact === 'string' &&
    isArtifactName(artifact) &&
    digest === artifact &&
    typeof size_bytes === 'number'
  );
}

/**
 * The names of all artifacts that a result refers to, at any depth. The result of a child run contains the references
 * of its steps.
 */
export function artifactsIn(value: unknown): ReadonlySet<string> {
  const names = new Set<string>();
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const each = pending.pop();
    if (typeof each !== 'object' || each === null) continue;
    if (isArtifact(each)) names.add(each.artifact);
    else for (const member of Object.values(each)) pending.push(member);
  }
  return names;
}
