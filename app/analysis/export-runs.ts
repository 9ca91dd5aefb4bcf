import { showRun } from '../../api/endpoints/runs/run-records.ts';
import type { RunState, RunTrigger } from '../../domain/vocabulary.ts';
import type { Filter, KeptDocument, ReadModel } from '../../projections/read-model.ts';
import { runsProjection, type RunDocument } from '../../projections/views/runs.ts';
import { csvLine, type Cell } from './csv.ts';
import type { ExportedPart } from './export-events.ts';
import type { ExportFormat } from './export-formats.ts';

/** Which runs are wanted; what is left out does not matter. */
export interface RunsFilter {
  /** Queued at or after it, and before the other; as the service writes instants. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly state?: RunState | undefined;
  readonly trigger?: RunTrigger | undefined;
  readonly taskId?: string | undefined;
}

/** Documents at a time. */
const PAGE = 500;

const columns = [
  'id',
  'task_id',
  'task_revision',
  'created_by',
  'trigger',
  'scheduled_for',
  'priority',
  'queued_at',
  'run_at',
  'state',
  'skip_reason',
  'attempt',
  'started_at',
  'finished_at',
  'seconds',
  'late_seconds',
  'error',
  'retry_of',
  'output',
] as const;

/**
 * The runs of the view that pass a filter, the first queued first; those that were skipped only by their state.
 * Reads a page at a time.
 */
export async function* exportRuns(
  readModel: ReadModel,
  format: ExportFormat,
  filter: RunsFilter,
): AsyncGenerator<ExportedPart> {
  const filters = filtersOf(filter);
  const total = Math.max(1, await readModel.count(runsProjection, filters));
  if (format === 'csv') yield { text: csvLine(columns), count: 0, share: 0, read: 0 };
  let done = 0;
  let after: { readonly values: readonly (string | null)[]; readonly key: string } | null = null;
  for (;;) {
    const page: readonly KeptDocument<RunDocument>[] = await readModel.find(runsProjection, {
      filters,
      sort: [{ field: 'queued_at', direction: 'ascending' }],
      limit: PAGE,
      ...(after === null ? {} : { after }),
    });
    done += page.length;
    const lines = page.map(({ document }) =>
      format === 'csv' ? csvOf(document) : `${JSON.stringify(showRun(document))}\n`,
    );
    const share = Math.min(1, done / total);
    yield { text: lines.join(''), count: page.length, share, read: page.length };
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = { values: [last.document.queued_at], key: last.key };
  }
}

function filtersOf({ since, until, state, trigger, taskId }: RunsFilter): readonly Filter[] {
  const filters: Filter[] = [];
  if (taskId !== undefined) filters.push({ field: 'task_id', op: 'eq', value: taskId });
  filters.push({ field: 'listed', op: 'eq', value: state !== 'skipped' });
  if (state !== undefined) filters.push({ field: 'state', op: 'eq', value: state });
  if (trigger !== undefined) filters.push({ field: 'trigger', op: 'eq', value: trigger });
  if (since !== undefined) filters.push({ field: 'queued_at', op: 'gte', value: since });
  if (until !== undefined) filters.push({ field: 'queued_at', op: 'lt', value: until });
  return filters;
}

function csvOf(run: RunDocument): string {
  const { started_at: started, finished_at: finished, run_at: due } = run;
  const cells: Readonly<Record<string, Cell | undefined>> = {
    ...showRun(run),
    seconds: between(started, finished),
    late_seconds: between(run.scheduled_for ?? due, started),
  };
  return csvLine(columns.map((column) => cells[column]));
}

function between(from: string | null, to: string | null): number | null {
  return from === null || to === null ? null : (Date.parse(to) - Date.parse(from)) / 1000;
}
