import { fromIso } from '../clock.ts';
import type { StepEnd } from '../events/catalogue.ts';
import { splitItemName } from '../pipeline/output.ts';

/** How long a step took, compared with earlier runs of its task. Seconds. */
export interface StepTime {
  /** `<step id>`, or `<step id>[<index>]` for an item. */
  readonly step: string;
  /** The duration in this run; null before the step has ended, and if its result was reused. */
  readonly took_seconds: number | null;
  /** How often earlier runs executed the step. */
  readonly measured: number;
  /** null if there are too few measurements. */
  readonly p50_seconds: number | null;
  readonly p95_seconds: number | null;
  /** Whether the step took clearly longer than in 95 % of the earlier runs. */
  readonly slow: boolean;
}

type TimedStep = Pick<StepEnd, 'step' | 'status' | 'started_at' | 'finished_at'>;

/** A run whose steps were timed. */
export interface TimedRun {
  readonly steps: readonly TimedStep[];
  /** How many of the steps, counted from the first, were reused from another run. */
  readonly reused?: number;
}

/** The fewest measurements from which percentiles are computed. */
const MIN_MEASURED = 5;
/** A step is slow if it takes this many times the 95th percentile, and this many seconds more. */
const SLOW_TIMES = 1.5;
const SLOW_SECONDS = 0.1;

/**
 * The times of a run's steps, from their last attempt, in the order of their ends. Then come steps that only earlier
 * runs have ended.
 * @param before earlier runs of the same task
 */
export function stepTimes(run: TimedRun, before: readonly TimedRun[]): readonly StepTime[] {
  const measured = new Map<string, number[]>();
  for (const each of before) {
    for (const step of executedIn(each)) {
      if (step.status !== 'succeeded') continue;
      const known = measured.get(kindOf(step.step));
      if (known === undefined) measured.set(kindOf(step.step), [secondsOf(step)]);
      else known.push(secondsOf(step));
    }
  }
  for (const seconds of measured.values()) seconds.sort((a, b) => a - b);
  const executed = new Set(executedIn(run));
  const last = new Map(run.steps.map((step) => [step.step, step]));
  const others = [...measured.keys()].filter((kind) => !kind.endsWith(']') && !last.has(kind));
  return [...last.keys(), ...others].map((name) => {
    const times = measured.get(kindOf(name)) ?? [];
    const step = last.get(name);
    const isKnown = times.length >= MIN_MEASURED;
    const hasRun = step !== undefined && executed.has(step) && step.status !== 'skipped';
    const took = hasRun ? secondsOf(step) : null;
    const p95 = isKnown ? quantile(times, 0.95) : null;
    return {
      step: name,
      took_seconds: took,
      measured: times.length,
      p50_seconds: isKnown ? quantile(times, 0.5) : null,
      p95_seconds: p95,
      slow: took !== null && p95 !== null && isSlow(took, p95),
    };
  });
}

/** Rounds to the millisecond. */
function isSlow(took: number, p95: number): boolean {
  const least = Math.max(p95 * SLOW_TIMES, p95 + SLOW_SECONDS);
  return Math.round(took * 1000) >= Math.round(least * 1000);
}

const executedIn = ({ steps, reused = 0 }: TimedRun): readonly TimedStep[] => steps.slice(reused);

/** Items of a step are measured together. */
function kindOf(name: string): string {
  const { id, index } = splitItemName(name);
  return index === null ? id : `${id}[]`;
}

const secondsOf = ({ started_at, finished_at }: TimedStep): number =>
  Math.max(0, fromIso(finished_at) - fromIso(started_at)) / 1000;

/** A percentile, by the nearest rank. @param sorted ascending, not empty */
function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
}
