import type { StepEnd } from '../events/catalogue.ts';

/**
 * Ends of steps in the order in which they were recorded, as links of a chain: a `for_each` over thousands of items
 * ends thousands of times, and copying a list each time costs more with every item.
 */
export interface StepEnds {
  readonly before: StepEnds | null;
  /** What the last event added. */
  readonly ends: readonly StepEnd[];
  /** How many there are in all. */
  readonly count: number;
}

export const noSteps: StepEnds = { before: null, ends: [], count: 0 };

/** The chain with these at its end. What it was before stays as it is. */
export function withEnds(steps: StepEnds, ends: readonly StepEnd[]): StepEnds {
  if (ends.length === 0) return steps;
  return { before: steps, ends, count: steps.count + ends.length };
}

/** The first of them to the last. */
export function endsOf(steps: StepEnds): readonly StepEnd[] {
  const links: (readonly StepEnd[])[] = [];
  for (let link: StepEnds | null = steps; link !== null; link = link.before) links.push(link.ends);
  return links.reverse().flat();
}
