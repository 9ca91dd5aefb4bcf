import { Type, type Static } from '@sinclair/typebox';
import type { JsonObject } from '../json.ts';

/**
 * What a pipeline is, as a client writes it: `{params?, pipeline: [step…]}` (the payload of a task). A step
 * uses a tool, or is a group of steps that run side by side.
 */

/** Most seconds a step may be given. */
const MOST_SECONDS = 604_800;

/** Seconds that a step has where it doesn't say. */
export const DEFAULT_TIMEOUT_SECONDS = 30;

/** Most items of a `for_each`: each leaves an event. */
export const MOST_ITEMS = 10_000;

/** Most items of all the `for_each` of a run: its worker and its view hold the ends of all of them. */
export const MOST_ITEMS_OF_RUN = 50_000;

const name = Type.String({ minLength: 1, maxLength: 100, pattern: '^[^\\[\\]]*$' });
const onError = Type.Unsafe<'fail' | 'continue'>({ type: 'string', enum: ['fail', 'continue'] });
const condition = Type.Union([Type.String({ minLength: 1 }), Type.Boolean()]);

/** A step that uses a tool. */
export const CallStepSchema = Type.Object(
  {
    /** Unique; `step_<n>` where left out (in a group `step_<n>_<m>`), counting from 0. Without brackets. */
    id: Type.Optional(name),
    /** Name of the tool. */
    uses: Type.String({ minLength: 1, maxLength: 200 }),
    /** Its arguments; `{}` where left out. */
    with: Type.Optional(Type.Unknown()),
    /** Another name for the result. */
    save_as: Type.Optional(name),
    /** JMESPath, bare or within `${…}`; what it gives decides whether the step runs. */
    if: Type.Optional(condition),
    timeout_seconds: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: MOST_SECONDS })),
    /** Further tries within one attempt of the run. */
    max_retries: Type.Optional(Type.Integer({ minimum: 0, maximum: 50 })),
    on_error: Type.Optional(onError),
    /** An expression that gives an array (or an array): the step runs for each item in turn. */
    for_each: Type.Optional(
      Type.Union([Type.String({ minLength: 1 }), Type.Array(Type.Unknown())]),
    ),
  },
  { additionalProperties: false },
);

/** A group of steps that run side by side. */
export const GroupStepSchema = Type.Object(
  {
    id: Type.Optional(name),
    parallel: Type.Array(Type.Unknown(), { minItems: 1, maxItems: 100 }),
    /** Name for all the results together. */
    save_as: Type.Optional(name),
    if: Type.Optional(condition),
    /** For the group as a whole; none where left out. */
    timeout_seconds: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: MOST_SECONDS })),
    /** `continue`: when one of its steps fails, the others are stopped, and the run goes on behind the group. */
    on_error: Type.Optional(onError),
  },
  { additionalProperties: false },
);

/** A step with a tool, checked, with its id. */
export type CallStep = Readonly<Static<typeof CallStepSchema>> & { readonly id: string };

/** A group, checked, with its id. */
export type GroupStep = Readonly<Omit<Static<typeof GroupStepSchema>, 'parallel'>> & {
  readonly id: string;
  readonly parallel: readonly CallStep[];
};

export type Step = CallStep | GroupStep;
export type Pipeline = readonly Step[];

export function isGroup(step: Step): step is GroupStep {
  return 'parallel' in step;
}

/** A payload that has been checked. */
export interface ParsedPayload {
  readonly pipeline: Pipeline;
  /** `{}` where there are none. */
  readonly params: JsonObject;
}
