import type { RunEvent } from '../events/catalogue.ts';
import type { Fold } from '../handle.ts';
import { outputOf } from '../pipeline/output.ts';
import type { JsonObject } from '../json.ts';
import { endsOf } from './run-steps.ts';
import type { Resumption } from './run-waits.ts';
import { hasEnded, runFold, type RunState } from './run.ts';

/** A run that a step waits for, with its last event. A retry of the run does not count. */
export interface AwaitedRun {
  readonly run: RunState;
  readonly last: RunEvent | null;
}

export const awaitedRunFold: Fold<AwaitedRun, RunEvent> = {
  initial: { run: runFold.initial, last: null },
  evolve: ({ run, last }, event, at) => ({
    run: runFold.evolve(run, event, at),
    last: event.type === 'RunRetried' ? last : event,
  }),
};

/**
 * How a run's end ends the wait for it. The output of a successful run is the step's result. Any other end fails the
 * step, which is not retried.
 *
 * @param maxBytes the largest result in bytes; may be more than an event can hold
 * @returns null for a run that has not ended
 */
export function endOfAwaited(
  id: string,
  { run, last }: AwaitedRun,
  maxBytes: number,
): Resumption | null {
  const by = { kind: 'run', id } as const;
  if (!hasEnded(run)) return null;
  if (last?.type === 'RunSucceeded' && 'steps' in run) {
    const result = outputOf(endsOf(run.steps), last.data.output as JsonObject, maxBytes);
    return { by, result };
  }
  return { by, error: `run ${id} ${becameOf(run, last)}`, retryable: false };
}

function becameOf({ state }: RunState, last: RunEvent | null): string {
  if (last?.type === 'RunFailed') return `failed: ${last.data.error}`;
  if (last?.type === 'RunSkipped') {
    const { reason, because_of } = last.data;
    return because_of === null
      ? `was skipped: ${reason}`
      : `was skipped: ${reason} with run ${because_of}`;
  }
  switch (state) {
    case 'failed':
      return 'failed';
    case 'canceled':
      return 'was canceled';
    case 'abandoned':
      return 'was not requested in time';
    default:
      return 'has ended, and retention removed its events';
  }
}

/** The state of a run's wait for a child run, according to its stream. */
export interface ChildWait {
  readonly run: RunState;
  readonly wait: { readonly id: string; readonly endedBy: Resumption['by']['kind'] | null } | null;
}

/** @param childId the child */
export function childWaitFold(childId: string): Fold<ChildWait, RunEvent> {
  return {
    initial: { run: runFold.initial, wait: null },
    evolve({ run, wait }, event, at) {
      const next = runFold.evolve(run, event, at);
      if (event.type === 'RunStepSuspended') {
        const { waits_for, wait_id: id } = event.data;
        const isIts = waits_for.kind === 'run' && waits_for.run_id === childId;
        return { run: next, wait: isIts ? { id, endedBy: null } : wait };
      }
      if (event.type === 'RunStepResumed' && event.data.wait_id === wait?.id) {
        return { run: next, wait: { id: wait.id, endedBy: event.data.by.kind } };
      }
      return { run: next, wait };
    },
  };
}

/**
 * Whether a run's child is canceled with it. `cancel`: the wait was stopped, or the run ended before it waited.
 * `leave`: the wait ended in another way, such as by its limit. `unknown`: it still waits, or may yet start to.
 */
export function fateOfChild({ run, wait }: ChildWait): 'cancel' | 'leave' | 'unknown' {
  if (wait !== null && wait.endedBy !== null)
    return wait.endedBy === 'stopped' ? 'cancel' : 'leave';
  if (run.state === 'removed' || run.state === 'none') return 'leave';
  return wait === null && hasEnded(run) ? 'cancel' : 'unknown';
}
