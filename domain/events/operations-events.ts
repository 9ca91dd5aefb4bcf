import { Type } from '@sinclair/typebox';
import { misfirePolicies } from '../vocabulary.ts';
import { Nullable, OneOf, closed } from './schema-parts.ts';

/** Events of `operations`: what operators ordered of the whole service. Who did stands in the metadata. */
export const operationsEvents = {
  /** From here on nothing fires, and no run starts. */
  OperationsHeld: {
    version: 1,
    schema: closed({ reason: Type.String({ minLength: 1, maxLength: 1000 }) }),
  },
  /** Ends the hold. `missed` stands for every task's misfire policy for what was due up to here; null: its own. */
  OperationsReleased: {
    version: 1,
    schema: closed({ missed: Nullable(OneOf(misfirePolicies)) }),
  },
} as const;
