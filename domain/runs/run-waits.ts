import { RefusalError } from '../errors.ts';
import type { DataOf, EventOf, RunEvent } from '../events/catalogue.ts';

type Suspended = DataOf<'RunStepSuspended'>;
type Resumed = DataOf<'RunStepResumed'>;

/** The condition for which a suspended step waits. */
export type WaitsFor = Suspended['waits_for'];

/** A wait that a call from outside ends. The call finds it by the approval's id or the callback's token. */
export type AnswerableWait = Extract<WaitsFor, { readonly kind: 'approval' | 'callback' }>;

export const isAnswerable = (waitsFor: WaitsFor): waitsFor is AnswerableWait =>
  waitsFor.kind === 'approval' || waitsFor.kind === 'callback';

/** How a wait ended: its result, or its error. */
export type Resumption = Omit<Resumed, 'step' | 'wait_id'>;

/** A suspended step of an unfinished run. A step has at most one wait. */
export interface Wait extends Omit<Suspended, 'task_id'> {
  /** The end of the wait; set until the end of the step is recorded. */
  readonly resumed: Resumption | null;
  /** The progress of its job, from 0 to 1, if its worker reports it. */
  readonly progress?: number;
  /** Lines logged during the wait. */
  readonly logged?: number;
}

/** The waits of a run without any, shared by most runs. */
export const noWaits: readonly Wait[] = [];

/** A run's suspended steps after an event of its stream. */
export function evolveWaits(waits: readonly Wait[], event: RunEvent): readonly Wait[] {
  switch (event.type) {
    case 'RunStepSuspended': {
      const { task_id: _, ...wait } = event.data;
      // A callback may arrive before its tool has returned. The wait is then recorded again, but has already ended.
      const known = waits.find(({ wait_id }) => wait_id === wait.wait_id);
      // A step has at most one wait, so a later one replaces it.
      return [...withoutStep(waits, wait.step), { ...wait, resumed: known?.resumed ?? null }];
    }
    case 'RunStepResumed': {
      const { step: _, wait_id, ...resumed } = event.data;
      return waits.map((wait) => (wait.wait_id === wait_id ? { ...wait, resumed } : wait));
    }
    case 'RunStepProgressed': {
      const { wait_id, progress, log = [] } = event.data;
      return waits.map((wait) => {
        if (wait.wait_id !== wait_id) return wait;
        const logged = (wait.logged ?? 0) + log.length;
        return {
          ...wait,
          ...(progress === undefined ? {} : { progress }),
          ...(logged === 0 ? {} : { logged }),
        };
      });
    }
    case 'RunStepCompleted':
      return withoutStep(waits, event.data.step);
    case 'RunAttemptFailed':
    case 'RunSucceeded':
    case 'RunFailed':
    case 'RunCanceled':
      return noWaits;
    default:
      return waits;
  }
}

/**
 * Like {@link evolveWaits}, but without the parts that only a worker needs: arguments, logs and results. Suitable for
 * many runs in memory.
 */
export function evolveSlimWaits(waits: readonly Wait[], event: RunEvent): readonly Wait[] {
  if (event.type === 'RunStepSuspended') {
    const { log: _, ...data } = event.data;
    const { waits_for } = data;
    const slim = waits_for.kind === 'job' ? { ...waits_for, arguments: null } : waits_for;
    return evolveWaits(waits, { type: event.type, data: { ...data, waits_for: slim } });
  }
  if (event.type === 'RunStepResumed') {
    const { step, wait_id, by } = event.data;
    return evolveWaits(waits, { type: event.type, data: { step, wait_id, by } });
  }
  return evolveWaits(waits, event);
}

function withoutStep(waits: readonly Wait[], ended: string): readonly Wait[] {
  return waits.length === 0 ? waits : waits.filter(({ step }) => step !== ended);
}

export const isOpen = (wait: Wait): boolean => wait.resumed === null;

/** Whether a wait has ended without an error, so its step has nothing left to do. */
export const hasResult = ({ resumed }: Wait): boolean =>
  resumed !== null && resumed.error === undefined;

/** Whether a run that no worker executes has work to do: at least one unfinished step is not waiting. */
export function mayContinue(waits: readonly Wait[]): boolean {
  return waits.length === 0 || !waits.every(isOpen);
}

/** Whether a waiting run gives up its concurrency key, which all its open waits must allow. */
export function releasesKey(waits: readonly Wait[]): boolean {
  return waits.length > 0 && waits.every((wait) => wait.release_key === true);
}

/**
 * Ends a wait.
 * @param waits of the run; empty for a run that has ended
 * @throws RefusalError `STATE_CONFLICT` if the wait or its run has already ended
 */
export function resumeStep(
  waits: readonly Wait[],
  waitId: string,
  resumption: Resumption,
): EventOf<'RunStepResumed'> {
  const wait = waits.find(({ wait_id }) => wait_id === waitId);
  if (wait === undefined || wait.resumed !== null) {
    throw new RefusalError('STATE_CONFLICT', 'the step is no longer waiting', {
      resumed_by: wait?.resumed?.by.kind ?? null,
    });
  }
  const { step, wait_id } = wait;
  return { type: 'RunStepResumed', data: { step, wait_id, ...resumption } };
}

/**
 * Ends all open waits, because the run ends or their group has failed.
 * @param steps ends only the waits of these steps; default: all
 */
export function stopWaits(
  waits: readonly Wait[],
  steps: (step: string) => boolean = () => true,
): readonly EventOf<'RunStepResumed'>[] {
  return waits
    .filter((wait) => isOpen(wait) && steps(wait.step))
    .map(({ step, wait_id }) => {
      const error = 'the step was stopped while it waited';
      return {
        type: 'RunStepResumed',
        data: { step, wait_id, by: { kind: 'stopped' }, error, retryable: false },
      };
    });
}
