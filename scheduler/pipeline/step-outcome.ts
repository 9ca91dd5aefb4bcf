import type { Failure } from './call-failure.ts';

/** The end of a step, with the data that the pipeline needs. */
export type StepOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'aborted' }
  /** It waits without holding anything. */
  | { readonly kind: 'suspended' }
  | { readonly kind: 'failed'; readonly step: string; readonly failure: Failure };

export const done: StepOutcome = { kind: 'done' };
export const aborted: StepOutcome = { kind: 'aborted' };
export const suspended: StepOutcome = { kind: 'suspended' };
