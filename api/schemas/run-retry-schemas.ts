import { Type, type Static } from '@sinclair/typebox';
import { OneOf, closed, withDefault } from '../../domain/events/schema-parts.ts';
import { retryStarts, runTriggers } from '../../domain/vocabulary.ts';
import { pageParameters } from '../endpoints/listing.ts';
import { givenParams } from './schemas.ts';

/** Requests to retry and redrive runs. */

const uuid = Type.String({ format: 'uuid', description: 'a UUID' });
const timestamp = Type.String({ maxLength: 64 });
const from = Type.Optional(withDefault(OneOf(retryStarts), 'failed_step'));

/** Maximum runs that one call redrives. */
export const MAX_REDRIVEN_RUNS = 1000;

export const RetryQuery = Type.Object({ from });
export type RetryQuery = Static<typeof RetryQuery>;

export const RetryRun = Type.Partial(closed({ params: givenParams }));
export type RetryRun = Static<typeof RetryRun>;

export const RedriveRuns = Type.Partial(
  closed({
    task_id: uuid,
    created_by: uuid,
    trigger: OneOf(runTriggers),
    start_time: timestamp,
    end_time: timestamp,
    /** Part of the error, ignoring case. */
    error: Type.String({ minLength: 1, maxLength: 500 }),
    from,
    limit: Type.Integer({ minimum: 1, maximum: MAX_REDRIVEN_RUNS, default: MAX_REDRIVEN_RUNS }),
    cursor: Type.String({ maxLength: 2000 }),
    dry_run: Type.Boolean({ default: false }),
  }),
);
export type RedriveRuns = Static<typeof RedriveRuns>;

/**
 * `dry_run` also counts in the query: a caller who only wants to look must not cause the redrive.
 */
export const RedriveQuery = Type.Object({
  dry_run: Type.Boolean({ default: false }),
  after: pageParameters.after,
});
export type RedriveQuery = Static<typeof RedriveQuery>;
