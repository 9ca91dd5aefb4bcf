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

const name = (description: string) =>
  Type.String({ minLength: 1, maxLength: 100, pattern: '^[^\\[\\]]*$', description });
const id = name('name of the step, unique in its pipeline and without brackets; else `step_<n>`');
const onError = (description: string) =>
  Type.Unsafe<'fail' | 'continue'>({
    type: 'string',
    enum: ['fail', 'continue'],
    default: 'fail',
    description,
  });
const condition = Type.Union([Type.String({ minLength: 1 }), Type.Boolean()], {
  description:
    'JMESPath, bare or within `${…}`; false, null, and an empty string, array or object skip the step',
});
const seconds = { exclusiveMinimum: 0, maximum: MOST_SECONDS };

/** A step that uses a tool. */
export const CallStepSchema = Type.Object(
  {
    id: Type.Optional(id),
    uses: Type.String({ minLength: 1, maxLength: 200, description: 'name of the tool' }),
    with: Type.Optional(Type.Unknown({ default: {}, description: 'arguments of the tool' })),
    save_as: Type.Optional(name('another name for the result')),
    if: Type.Optional(condition),
    timeout_seconds: Type.Optional(
      Type.Number({
        ...seconds,
        default: DEFAULT_TIMEOUT_SECONDS,
        description: 'most seconds of one try of the step',
      }),
    ),
    max_retries: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 50,
        default: 0,
        description: 'further tries of the step within one attempt of the run',
      }),
    ),
    on_error: Type.Optional(
      onError('whether a failure of the step fails the run, or the run continues'),
    ),
    for_each: Type.Optional(
      Type.Union([Type.String({ minLength: 1 }), Type.Array(Type.Unknown())], {
        description:
          'an array, or an expression that gives one: the step runs for each item in turn, which it reads as `${item}`',
      }),
    ),
  },
  { additionalProperties: false },
);

/** A group of steps that run side by side. */
export const GroupStepSchema = Type.Object(
  {
    id: Type.Optional(id),
    parallel: Type.Array(Type.Unknown(), {
      minItems: 1,
      maxItems: 100,
      description: 'steps that run at the same time',
    }),
    save_as: Type.Optional(name('name for all the results together')),
    if: Type.Optional(condition),
    timeout_seconds: Type.Optional(
      Type.Number({ ...seconds, description: 'most seconds of the whole group; none if left out' }),
    ),
    on_error: Type.Optional(
      onError(
        'what happens when one of its steps fails: the others are stopped, and the run fails or continues after the group',
      ),
    ),
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
