import { toIso, type Instant } from '../../../domain/clock.ts';
import { decidedPage, type NominalSpan } from '../../../domain/explain/decided-span.ts';
import { endOf, startOf, type Decision } from '../../../domain/explain/decisions.ts';
import { DAY } from '../../../domain/schedule/civil.ts';
import { streams } from '../../../domain/streams.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import {
  DecidedFires,
  FiresQuery,
  MAX_SPAN_DAYS,
  type DecidedFire,
} from '../../schemas/fire-schemas.ts';
import { endpoint, idIn, type Endpoint } from '../../endpoint.ts';
import { badRequest } from '../../errors.ts';
import { instantOf } from '../history/instant.ts';
import { invalidCursor } from '../listing.ts';
import { taskWithId } from '../lookup.ts';
import { shorten } from '../runs/run-records.ts';
import { runsOfDecisions } from './fire-runs.ts';

const list = endpoint('GET /tasks/:id/fires', {
  operationId: 'listDecidedFires',
  summary: 'Lists the decisions about the fires of a past span, newest first',
  description:
    'The decisions are read from the log, so later changes of the schedule do not matter. Fires that were skipped together are one item.',
  scopes: ['tasks:read'],
  acceptsOwn: true,
  query: FiresQuery,
  reads: [runsProjection],
  responses: { 200: DecidedFires },
  async handle(call) {
    const { dependencies, query } = call;
    const { store, readModel } = dependencies;
    const id = idIn(call, 'id');
    const before = revisionOf(query.cursor);
    // Invalid timestamps are reported before an unknown task.
    spanOf(query, 'UTC');
    const { definition } = await taskWithId(call, id);
    const span = spanOf(query, definition.timezone);
    const { limit } = query;
    const page = await decidedPage(store, streams.fires(id), span, { before, limit });
    const runs = await runsOfDecisions(readModel, id, page.decisions);
    const items = page.decisions.map((each) => show(each, runs));
    const next_cursor = page.next === null ? null : String(page.next);
    return {
      body: { task_id: id, from: toIso(span.from), to: toIso(span.to), items, next_cursor },
    };
  },
});

export const firesEndpoints: readonly Endpoint[] = [list];

/** @throws HttpError 400 for an invalid timestamp, or a span that ends before it starts or is too long */
function spanOf({ from, to }: FiresQuery, zone: string): NominalSpan {
  const span = { from: instantOf('from', from, zone), to: instantOf('to', to, zone, 'last') };
  checkSpan(span);
  return span;
}

function checkSpan({ from, to }: { readonly from: Instant; readonly to: Instant }): void {
  if (to < from) throw badRequest([{ field: 'to', issue: 'must not be before from' }]);
  if (to - from <= MAX_SPAN_DAYS * DAY) return;
  const issue = `must be at most ${MAX_SPAN_DAYS} days after from`;
  throw badRequest([{ field: 'to', issue }]);
}

/** @throws HttpError 400 for an invalid cursor */
function revisionOf(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
  throw invalidCursor();
}

function show(decision: Decision, runs: ReadonlyMap<string, RunDocument>): DecidedFire {
  const { revision, metadata, data } = decision;
  const fired = decision.type === 'Fired';
  const run = fired ? runs.get(decision.data.run_id) : undefined;
  return {
    revision,
    reason: fired ? 'fired' : decision.data.reason,
    from: toIso(startOf(decision)),
    to: toIso(endOf(decision)),
    count: fired ? 1 : decision.data.count,
    decided_at: metadata.occurredAt,
    task_revision: data.task_revision,
    run_id: fired ? decision.data.run_id : null,
    run: run === undefined ? null : showRun(run),
  };
}

function showRun(run: RunDocument): NonNullable<DecidedFire['run']> {
  const { id, state, skip_reason, started_at, finished_at } = run;
  return { id, state, skip_reason, error: shorten(run.error), started_at, finished_at };
}
