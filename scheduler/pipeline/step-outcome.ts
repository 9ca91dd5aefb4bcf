import type { Failure } from './call-failure.ts';

/** How a step ended, as far as the pipeline needs to know. */
export type StepOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'aborted' }
  /** It waits, and holds nothing. */
  | { readonly kind: 'suspended' }
  | { readonly kind: 'failed'; readonly step: string; readonly failure: Failure };

export const done: StepOutcome = { kind: 'done' };
export const aborted: StepOutcome = { kind: 'aborted' };
export const suspended: StepOutcome = { kind: 'suspended' };
