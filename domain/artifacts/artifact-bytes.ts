import type { DomainEvent } from '../events/catalogue.ts';
import { isArtifact } from './artifact.ts';

/** The total size in bytes of all artifacts that a result refers to, at any depth. */
export function bytesOfArtifacts(result: unknown): number {
  let bytes = 0;
  const pending: unknown[] = [result];
  while (pending.length > 0) {
    const each = pending.pop();
    if (typeof each !== 'object' || each === null) continue;
    if (isArtifact(each)) bytes += Math.max(0, Math.trunc(each.size_bytes));
    else for (const member of Object.values(each)) pending.push(member);
  }
  return bytes;
}

/**
 * The total size in bytes of the artifacts that an event adds to a run, by the steps that it ends or reuses from
 * another run.
 */
export function artifactBytesAt(event: DomainEvent): number {
  switch (event.type) {
    case 'RunRequested':
      return bytesOfArtifacts(event.data.prior_steps.map(({ result }) => result));
    case 'RunStepCompleted':
      return bytesOfArtifacts(event.data.result);
    case 'RunSucceeded':
    case 'RunFailed':
      return bytesOfArtifacts(event.data.steps.map(({ result }) => result));
    default:
      return 0;
  }
}
