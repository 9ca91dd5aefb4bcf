import type { Instant } from '../../domain/clock.ts';
import type { KeyName } from '../../domain/keys/key.ts';
import type { QueuedRun } from '../runs/run-queue.ts';

/** A run that is handed a slot has to begin here within this time, or loses it again. Milliseconds. */
export const GRANT_LIFE = 1000;

/** A concurrency key's slot that this process has taken for a run, before the run asked for it. */
export interface Grant {
  readonly run: QueuedRun;
  readonly name: KeyName;
  readonly attempt: number;
  /** Of the run's stream, when the slot was taken. */
  readonly revision: number;
  readonly at: Instant;
}

/**
 * Slots that were handed on: who gives one back takes it for the next in line, in the same append. That saves the next an
 * append, and the key the time in which nobody has it.
 *
 * Whoever takes such a slot away, since nobody begins with it, first appends to the run's stream. So a run that is where it
 * was when the slot was taken may begin without asking again: its start expects that revision, and of the two one loses
 * the race.
 */
export class KeyGrants {
  /** A run needs one concurrency key at most. */
  private readonly granted = new Map<string, Grant>();

  note(grant: Grant): void {
    this.granted.set(grant.run.id, grant);
  }

  /** Whether a run was handed a slot that it has not used yet. */
  has(runId: string): boolean {
    return this.granted.has(runId);
  }

  /** Whether a run may begin an attempt with a slot that was handed to it. It may once. */
  use(run: QueuedRun, attempt: number, now: Instant): boolean {
    const grant = this.granted.get(run.id);
    if (grant === undefined) return false;
    this.granted.delete(run.id);
    const young = Math.abs(now - grant.at) < GRANT_LIFE;
    return young && grant.revision === run.revision && grant.attempt === attempt;
  }

  /** All that nobody has begun with; they are forgotten here, and nobody begins with them any more. */
  withdraw(): readonly Grant[] {
    const left = [...this.granted.values()];
    this.granted.clear();
    return left;
  }

  /** Those that nobody has begun with in time; they are forgotten here. */
  unused(now: Instant): readonly Grant[] {
    const old = [...this.granted.values()].filter(({ at }) => Math.abs(now - at) >= GRANT_LIFE);
    for (const { run } of old) this.granted.delete(run.id);
    return old;
  }
}
