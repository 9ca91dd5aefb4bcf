import { toIso, type Instant } from '../../domain/clock.ts';
import type { EventOf } from '../../domain/events/catalogue.ts';
import { newId } from '../../domain/ids.ts';
import { namespaceField } from '../../domain/namespaces/namespace.ts';
import { isOpen, stopWaits, type Wait } from '../../domain/runs/run-waits.ts';
import type { Environment, Execution } from './execution.ts';

/** A step that starts to wait. */
export interface Suspending extends Pick<Wait, 'waits_for' | 'tries' | 'release_key'> {
  readonly step: string;
  readonly startedAt: Instant;
  readonly until: Instant;
}

/** The waits of an execution's steps, open or ended, until the steps end. */
export class StepWaits {
  readonly #execution: Execution;
  readonly #clock: Environment['clock'];
  readonly #waits = new Map<string, Wait>();
  readonly #listeners = new Set<(step: string) => void>();

  constructor(execution: Execution, { clock, onResumed }: Environment) {
    this.#execution = execution;
    this.#clock = clock;
    for (const wait of execution.waits) this.#waits.set(wait.step, wait);
    onResumed?.(({ data }) => this.#resume(data));
  }

  of(step: string): Wait | undefined {
    return this.#waits.get(step);
  }

  has(step: string): boolean {
    return this.#waits.has(step);
  }

  /**
   * Notes that a step waits. The wait replaces the step's earlier one, and keeps its id if that is still open.
   * @param arguments_hash undefined while its arguments are not evaluated
   */
  suspend(suspending: Suspending, arguments_hash: string | undefined): EventOf<'RunStepSuspended'> {
    const { step, startedAt, until, tries, release_key, waits_for } = suspending;
    const known = this.#waits.get(step);
    const isSame = known !== undefined && isOpen(known);
    const wait = {
      step,
      wait_id: isSame ? known.wait_id : newId(this.#clock.now()),
      attempt: this.#execution.attempt,
      waits_for,
      since: toIso(startedAt),
      until: toIso(until),
      ...(tries === undefined ? {} : { tries }),
      ...(release_key === undefined ? {} : { release_key }),
      ...(arguments_hash === undefined ? {} : { arguments_hash }),
    };
    this.#waits.set(step, { ...wait, resumed: null });
    const { taskId: task_id, namespace } = this.#execution;
    return { type: 'RunStepSuspended', data: { ...wait, task_id, ...namespaceField(namespace) } };
  }

  /** Ends the open waits of steps that are stopped. */
  stop(steps: (step: string) => boolean): readonly EventOf<'RunStepResumed'>[] {
    const stopped = stopWaits([...this.#waits.values()], steps);
    for (const { data } of stopped) this.#waits.delete(data.step);
    return stopped;
  }

  /** Notes that a step has ended. */
  ended(step: string): void {
    if (this.#waits.size > 0) this.#waits.delete(step);
  }

  /** Calls back when a wait ends while other steps run. @returns a function that ends that */
  listen(onResumed: (step: string) => void): () => void {
    this.#listeners.add(onResumed);
    return () => this.#listeners.delete(onResumed);
  }

  /** Whether the wait of one of these steps has ended, and the step has not. */
  hasResumed(steps: (step: string) => boolean): boolean {
    return [...this.#waits.values()].some((wait) => !isOpen(wait) && steps(wait.step));
  }

  #resume({ step, wait_id, ...resumed }: EventOf<'RunStepResumed'>['data']): void {
    const wait = this.#waits.get(step);
    if (wait?.wait_id !== wait_id) return;
    this.#waits.set(step, { ...wait, resumed });
    for (const listener of this.#listeners) listener(step);
  }
}
