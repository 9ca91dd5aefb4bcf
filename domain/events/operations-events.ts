import { Type } from '@sinclair/typebox';
import { misfirePolicies } from '../vocabulary.ts';
import { event, Nullable, OneOf } from './schema-parts.ts';

/** Events of `operations`: orders for the whole service. The metadata names the operator. */
export const operationsEvents = {
  /** Nothing fires and no run starts from here on. */
  OperationsHeld: event({ reason: Type.String({ minLength: 1, maxLength: 1000 }) }),
  /**
   * Ends the hold. `missed` replaces the misfire policies for fires due up to now; null: each task's own policy
   * applies.
   */
  OperationsReleased: event({ missed: Nullable(OneOf(misfirePolicies)) }),
} as const;
