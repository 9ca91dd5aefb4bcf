import { Type, type Static } from '@sinclair/typebox';
import type { JsonObject } from '../json.ts';

/**
 * A pipeline as a client writes it in a task's payload: `{params?, pipeline: [step…]}`. A step
 * calls a tool, or is a group of parallel steps.
 */

/** The most seconds of a step's timeout. */
const MAX_TIMEOUT_SECONDS = 604_800;

/** Default timeout of a step, in seconds. */
export const DEFAULT_TIMEOUT_SECONDS = 30;

/** The longest wait in seconds: a year. */
export const MAX_WAIT_SECONDS = 366 * 86_400;

/** The default limits of a wait for a callback, and for a worker's result. Seconds. */
export const DEFAULT_CALLBACK_SECONDS = 86_400;
export const DEFAULT_JOB_SECONDS = 7 * 86_400;

/** The most items of a `for_each` that run at the same time. */
const MAX_PARALLEL_ITEMS = 100;

/** The most items of a `for_each`; each appends an event. */
export const MAX_FOR_EACH_ITEMS = 10_000;

/**
 * The most items of all `for_each` steps of a run. They are limited because the worker and the view hold all of their
 * ends.
 */
export const MAX_FOR_EACH_ITEMS_PER_RUN = 50_000;

const name = (description: string) =>
  Type.String({ minLength: 1, maxLength: 100, pattern: '^[^\\[\\]]*$', description });
const id = name(
  'name of the step, unique in its pipeline and without brackets; default: `step_<n>`',
);
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
const needs = Type.Array(Type.String(), {
  maxItems: 100,
  uniqueItems: true,
  description:
    'ids of steps that must end before this one starts; in a pipeline with `needs`, a step without them starts at once',
});
const seconds = { exclusiveMinimum: 0, maximum: MAX_TIMEOUT_SECONDS };

/** A step that calls a tool. */
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
        description: 'maximum seconds of one try of the step',
      }),
    ),
    max_retries: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 50,
        default: 0,
        description: 'how often a failed step is tried again within one attempt of the run',
      }),
    ),
    on_error: Type.Optional(
      onError('whether a failure of the step fails the run, or the run continues'),
    ),
    for_each: Type.Optional(
      Type.Union([Type.String({ minLength: 1 }), Type.Array(Type.Unknown())], {
        description:
          'an array, or an expression that yields one; the step runs for each item, which it reads as `${item}`',
      }),
    ),
    max_parallel: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_PARALLEL_ITEMS,
        default: 1,
        description: 'how many items of `for_each` run at once',
      }),
    ),
    needs: Type.Optional(needs),
    wait_for: Type.Optional(
      Type.Unsafe<'callback'>({
        type: 'string',
        enum: ['callback'],
        description:
          'the step waits for a POST to `${callback.url}` after its tool has returned; the body is its result',
      }),
    ),
    wait_seconds: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: MAX_WAIT_SECONDS,
        description: `maximum seconds to wait for the callback (default ${DEFAULT_CALLBACK_SECONDS}) or for a worker's result (default ${DEFAULT_JOB_SECONDS})`,
      }),
    ),
    release_key: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'whether the run gives up its concurrency key while the step waits',
      }),
    ),
    on: Type.Optional(
      Type.Record(Type.String({ maxLength: 100 }), Type.String({ maxLength: 200 }), {
        maxProperties: 20,
        description: 'only workers with all of these labels do the job of the step',
      }),
    ),
  },
  { additionalProperties: false },
);

/** A group of parallel steps. */
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
    needs: Type.Optional(needs),
    timeout_seconds: Type.Optional(
      Type.Number({
        ...seconds,
        description: 'maximum seconds of the whole group; no limit if left out',
      }),
    ),
    on_error: Type.Optional(
      onError(
        'what happens when one of its steps fails: the others are stopped, and the run fails or continues after the group',
      ),
    ),
  },
  { additionalProperties: false },
);

/** A validated step that calls a tool, with its id. */
export type CallStep = Readonly<Static<typeof CallStepSchema>> & { readonly id: string };

/** A validated group, with its id. */
export type GroupStep = Readonly<Omit<Static<typeof GroupStepSchema>, 'parallel'>> & {
  readonly id: string;
  readonly parallel: readonly CallStep[];
};

export type Step = CallStep | GroupStep;
export type Pipeline = readonly Step[];

export function isGroup(step: Step): step is GroupStep {
  return 'parallel' in step;
}

/** A validated payload. */
export interface ParsedPayload {
  readonly pipeline: Pipeline;
  /** `{}` if omitted. */
  readonly params: JsonObject;
}
