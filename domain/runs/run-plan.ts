import type { StepEnd } from '../events/catalogue.ts';
import type { CompiledCall, CompiledPipeline } from '../pipeline/compile.ts';
import { itemName, splitItemName } from '../pipeline/output.ts';
import { finishedSteps } from '../pipeline/progress.ts';
import type { RunState, StepState } from '../vocabulary.ts';
import { isOpen, type Wait } from './run-waits.ts';

/** A step of a run's pipeline, or an item of its `for_each`. */
export interface PlannedStep {
  /** `<step id>`, or `<step id>[<index>]` for an item. */
  readonly step: string;
  readonly state: StepState;
  /** The tool; null for a group. */
  readonly uses: string | null;
  /** The group that it is part of; null for none. */
  readonly group: string | null;
  /** The steps that must end before it; in a sequence, the previous one. Empty for steps of a group and for items. */
  readonly needs: readonly string[];
  /** Left out if it is unknown. */
  readonly arguments_hash?: string;
}

type End = Pick<StepEnd, 'step' | 'status' | 'attempt' | 'arguments_hash'>;

/** The data from which a plan is derived. */
export interface PlannedRun {
  readonly state: RunState;
  /** The latest attempt. */
  readonly attempt: number;
  /** In the order of their ends. */
  readonly steps: readonly End[];
  /** How many of the ends, counted from the first, were reused from the run that this one retries. */
  readonly reused: number;
  readonly waits: readonly Wait[];
}

/**
 * Every step of a run's pipeline with its state, in the order of the pipeline. The steps of a group follow the group.
 * Items follow their step once they have ended, or while they wait.
 *
 * The log does not record the start of a step. The state `running` is derived: the run is running, and all steps before
 * this one have ended.
 */
export function planOf(pipeline: CompiledPipeline, run: PlannedRun): readonly PlannedStep[] {
  return new Plan(pipeline, run).steps();
}

class Plan {
  readonly #pipeline: CompiledPipeline;
  readonly #run: PlannedRun;
  readonly #finished: ReadonlyMap<string, End>;
  /** The last end of each step, including steps that run again. */
  readonly #latest: ReadonlyMap<string, End>;
  readonly #reused: ReadonlySet<string>;
  readonly #waits: ReadonlyMap<string, Wait>;
  /** Indexes of the items that are shown, by step. */
  readonly #items = new Map<string, number[]>();
  /** Steps outside groups that may run. */
  readonly #started: ReadonlySet<string>;

  constructor(pipeline: CompiledPipeline, run: PlannedRun) {
    const { steps, reused, waits } = run;
    this.#pipeline = pipeline;
    this.#run = run;
    this.#finished = finishedSteps(pipeline, steps);
    this.#latest = new Map(steps.map((end) => [end.step, end]));
    this.#reused = new Set(steps.slice(0, reused).map(({ step }) => step));
    this.#waits = new Map(waits.map((wait) => [wait.step, wait]));
    for (const name of new Set([...this.#latest.keys(), ...this.#waits.keys()])) {
      const { id, index } = splitItemName(name);
      if (index === null) continue;
      const known = this.#items.get(id);
      if (known === undefined) this.#items.set(id, [index]);
      else known.push(index);
    }
    this.#started = this.#startedSteps();
  }

  steps(): readonly PlannedStep[] {
    const { isGraph, steps } = this.#pipeline;
    const ids = steps.map(({ id }) => id);
    return steps.flatMap((step, place) => {
      const needs = isGraph ? step.needs : ids.slice(Math.max(0, place - 1), place);
      const isStarted = this.#started.has(step.id);
      if (step.kind === 'call') return this.#callAndItems(step, { needs, isStarted });
      const children = step.steps.flatMap((child) =>
        this.#callAndItems(child, { isStarted, group: step.id }),
      );
      const state = this.#stateOf(step.id, isStarted, children);
      return [this.#shown(step.id, { state, needs }), ...children];
    });
  }

  #callAndItems(
    { id, uses }: CompiledCall,
    about: {
      readonly isStarted: boolean;
      readonly group?: string;
      readonly needs?: readonly string[];
    },
  ): readonly PlannedStep[] {
    const { isStarted, group, needs } = about;
    const groupEnd = (group === undefined ? undefined : this.#finished.get(group)) ?? null;
    const indexes = (this.#items.get(id) ?? []).toSorted((one, other) => one - other);
    const items = indexes.map((index) => {
      const name = itemName(id, index);
      return this.#shown(name, { state: this.#stateOf(name, isStarted), uses, group });
    });
    const isSkipped = groupEnd?.status === 'skipped';
    const state = isSkipped
      ? this.#endState(groupEnd)
      : this.#stateOf(id, isStarted && groupEnd === null, items);
    return [this.#shown(id, { state, uses, group, needs }), ...items];
  }

  /** @param parts items, or steps of a group; their states count until the step itself has ended */
  #stateOf(name: string, isStarted: boolean, parts: readonly PlannedStep[] = []): StepState {
    const { state, attempt } = this.#run;
    const end = this.#finished.get(name);
    if (end !== undefined) return this.#endState(end);
    const isRunning = state === 'running';
    const wait = this.#waits.get(name);
    if (wait !== undefined) return isRunning && goesOn(wait) ? 'running' : 'waiting';
    const failed = this.#latest.get(name);
    if (failed !== undefined && (!isRunning || failed.attempt === attempt)) return 'failed';
    if (parts.some((part) => part.state === 'running')) return 'running';
    if (parts.some((part) => part.state === 'waiting')) return 'waiting';
    if (isRunning && isStarted) return 'running';
    // A failed step after which the run continues is among the finished ones.
    const hasFailed = parts.some(
      ({ step, state: of }) => of === 'failed' && !this.#finished.has(step),
    );
    return hasFailed ? 'failed' : 'pending';
  }

  #endState({ step, status }: End): StepState {
    return this.#reused.has(step) ? 'reused' : status;
  }

  #shown(
    step: string,
    about: {
      readonly state: StepState;
      readonly uses?: string;
      readonly group?: string | undefined;
      readonly needs?: readonly string[] | undefined;
    },
  ): PlannedStep {
    const { state, uses = null, group = null, needs = [] } = about;
    const end = state === 'pending' || state === 'running' ? undefined : this.#latest.get(step);
    const arguments_hash = (this.#waits.get(step) ?? end)?.arguments_hash;
    const shown = { step, state, uses, group, needs };
    return arguments_hash === undefined ? shown : { ...shown, arguments_hash };
  }

  /** In a sequence, one step runs at a time. */
  #startedSteps(): ReadonlySet<string> {
    const { steps, isGraph } = this.#pipeline;
    const left = steps.filter(({ id }) => !this.#finished.has(id));
    const started = isGraph
      ? left.filter(({ needs }) => needs.every((each) => this.#finished.has(each)))
      : left.slice(0, 1);
    return new Set(started.map(({ id }) => id));
  }
}

/** The step's wait has ended, or its tool is still being called. */
function goesOn(wait: Wait): boolean {
  const { waits_for } = wait;
  return !isOpen(wait) || (waits_for.kind === 'callback' && waits_for.calling === true);
}
