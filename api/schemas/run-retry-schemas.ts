import { Type, type Static } from '@sinclair/typebox';
import { OneOf, closed, withDefault } from '../../domain/events/schema-parts.ts';
import { retryStarts, runTriggers, unfinishedRunStates } from '../../domain/vocabulary.ts';
import { pageParameters } from '../endpoints/listing.ts';
import { givenParams, runSearch } from './schemas.ts';

/** Requests to retry and redrive runs. */

const uuid = Type.String({ format: 'uuid', description: 'a UUID' });
const timestamp = Type.String({ maxLength: 64 });
const from = Type.Optional(withDefault(OneOf(retryStarts), 'failed_step'));

/** The most runs that one call redrives or cancels. */
export const MAX_REDRIVEN_RUNS = 1000;

export const RetryQuery = Type.Object({ from });
export type RetryQuery = Static<typeof RetryQuery>;

export const RetryRun = Type.Partial(
  closed({
    params: givenParams,
    step: Type.String({
      minLength: 1,
      maxLength: 200,
      description:
        'the id of the first step to run; results of all steps that do not come after it are kept. Not with `from=start`',
    }),
  }),
);
export type RetryRun = Static<typeof RetryRun>;

/** Selects the runs of a command for many runs. */
const selection = {
  run_ids: Type.Array(uuid, {
    minItems: 1,
    maxItems: 200,
    description: 'only these runs, if they also match the other filters',
  }),
  task_id: uuid,
  created_by: uuid,
  trigger: OneOf(runTriggers),
  start_time: timestamp,
  end_time: timestamp,
  ...runSearch,
  limit: Type.Integer({ minimum: 1, maximum: MAX_REDRIVEN_RUNS, default: MAX_REDRIVEN_RUNS }),
  cursor: Type.String({ maxLength: 2000 }),
  dry_run: Type.Boolean({ default: false }),
};

export const RedriveRuns = Type.Partial(closed({ ...selection, from }));
export type RedriveRuns = Static<typeof RedriveRuns>;

export const CancelRuns = Type.Partial(closed({ ...selection, state: OneOf(unfinishedRunStates) }));
export type CancelRuns = Static<typeof CancelRuns>;

/**
 * `dry_run` also counts in the query, so that a caller who only wants a dry run does not start the redrive.
 */
export const RedriveQuery = Type.Object({
  dry_run: Type.Boolean({ default: false }),
  after: pageParameters.after,
  namespace: pageParameters.namespace,
});
export type RedriveQuery = Static<typeof RedriveQuery>;
