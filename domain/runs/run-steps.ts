import type { StepEnd } from '../events/catalogue.ts';

/**
 * Step ends in the order in which they were recorded. They are a linked list, because a `for_each` over thousands of
 * items adds thousands of ends, and copying an array each time would take quadratic time.
 */
export interface StepEnds {
  readonly before: StepEnds | null;
  /** The ends that the last event added. */
  readonly ends: readonly StepEnd[];
  /** The length of the whole list. */
  readonly count: number;
}

export const noSteps: StepEnds = { before: null, ends: [], count: 0 };

/** A new list with these ends added. */
export function withEnds(steps: StepEnds, ends: readonly StepEnd[]): StepEnds {
  if (ends.length === 0) return steps;
  return { before: steps, ends, count: steps.count + ends.length };
}

/** All ends, the first one first. */
export function endsOf(steps: StepEnds): readonly StepEnd[] {
  const links: (readonly StepEnd[])[] = [];
  for (let link: StepEnds | null = steps; link !== null; link = link.before) links.push(link.ends);
  return links.reverse().flat();
}
