import { setImmediate } from 'node:timers/promises';
import { writeJson } from '../../domain/exact-numbers.ts';
import type { RunState, RunTrigger } from '../../domain/vocabulary.ts';
import type { Filter, ViewDocument, Listed, ReadModel } from '../../projections/read-model.ts';
import type { Reach } from '../../projections/reach.ts';
import { runListing } from '../../projections/reading/run-queries.ts';
import { runsProjection, type RunDocument } from '../../projections/views/runs.ts';
import { showRun, type RunSource } from '../endpoints/runs/run-records.ts';
import type { Names } from '../../projections/reading/names.ts';
import { csvLine, type Cell } from './csv.ts';
import { PART_CHARACTERS, type ExportedPart, type ExportFormat } from './export-formats.ts';

/** Which runs are exported; instants are normalized. */
export interface RunsFilter {
  readonly reach: Reach;
  /** Runs queued at or after `since` and before `until`. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  /** Runs started after `start_time` and before `end_time`. */
  readonly start_time?: string | undefined;
  readonly end_time?: string | undefined;
  readonly success?: boolean | undefined;
  readonly state?: RunState | undefined;
  readonly trigger?: RunTrigger | undefined;
  readonly taskId?: string | undefined;
  /** Further filters. */
  readonly only?: readonly Filter[] | undefined;
}

interface RunsReading {
  readonly params: RunSource;
  /** Starts after this run; default: at the first run. */
  readonly behind?: ViewDocument<RunDocument> | undefined;
  /** Looks up the names of agents and tasks; default: they are left out. */
  readonly names?: Names | undefined;
}

/** Documents that are read at a time, and their bytes: one may have megabytes of results. */
const PAGE = 500;
const PAGE_BYTES = 4 * 1024 * 1024;

/** The header of CSV. */
export const runColumns = [
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
  'task_title',
  'created_by_name',
  'params',
  'event',
] as const;

/**
 * The runs that match a filter, the first queued first (or the first started, for a span of starts without a task);
 * skipped ones only by their state. Each run is in its state at the time when its page was read.
 */
export async function* exportRuns(
  readModel: ReadModel,
  format: ExportFormat,
  filter: RunsFilter,
  { behind, names, params }: RunsReading,
): AsyncGenerator<ExportedPart> {
  if (format === 'csv') yield { text: csvLine(runColumns), count: 0, share: 0, read: 0 };
  const listing = listingOf(filter);
  if (listing === null) return;
  const { filters, sort } = listing;
  const [{ field }] = sort;
  const total = Math.max(1, await readModel.count(runsProjection, filters));
  let done = 0;
  for (let last: Pick<ViewDocument<RunDocument>, 'key' | 'document'> | undefined = behind; ;) {
    const { documents, hasMore }: Listed = await readModel.list(runsProjection, {
      filters,
      sort,
      limit: PAGE,
      mostBytes: PAGE_BYTES,
      counted: null,
      isLoose: true,
      ...(last === undefined ? {} : { after: { values: [last.document[field]], key: last.key } }),
    });
    done += documents.length;
    const share = Math.min(1, done / total);
    let text = '';
    let count = 0;
    for (const { key, text: stored } of documents) {
      // One at a time: a parsed page would take several times its bytes, and block other requests.
      const document = JSON.parse(stored) as RunDocument;
      // Parsing and writing megabytes takes tens of milliseconds each.
      if (stored.length > PART_CHARACTERS) await setImmediate();
      last = { key, document };
      const named = {
        task_title: (await names?.taskTitle(document.task_id)) ?? null,
        created_by_name: (await names?.agentName(document.created_by)) ?? null,
      };
      const row = { ...(await showRun(params, document)), ...named };
      text += format === 'csv' ? csvOf(document, row) : `${writeJson(row)}\n`;
      count += 1;
      if (text.length < PART_CHARACTERS) continue;
      yield { text, count, share, read: count };
      // Gives other requests a turn.
      await setImmediate();
      [text, count] = ['', 0];
    }
    yield { text, count, share, read: count };
    if (!hasMore || documents.length === 0) return;
  }
}

interface Listing {
  readonly filters: readonly Filter[];
  readonly sort: readonly [
    { readonly field: 'queued_at' | 'started_at'; readonly direction: 'ascending' },
  ];
}

/** The list of runs in ascending order; null if nothing can match. */
function listingOf({ reach, since, taskId, only = [], ...filter }: RunsFilter): Listing | null {
  const listed = runListing(reach, { ...filter, task_id: taskId });
  if (listed === null) return null;
  const filters = [...listed.filters, ...only];
  if (since !== undefined) filters.push({ field: 'queued_at', op: 'gte', value: since });
  const field = listed.sort[0]?.field === 'started_at' ? 'started_at' : 'queued_at';
  return { filters, sort: [{ field, direction: 'ascending' }] };
}

function csvOf(run: RunDocument, row: object): string {
  const { started_at: started, finished_at: finished, run_at: due } = run;
  const cells: Readonly<Record<string, Cell | undefined>> = {
    ...row,
    seconds: between(started, finished),
    late_seconds: between(run.scheduled_for ?? due, started),
  };
  return csvLine(runColumns.map((column) => cells[column]));
}

function between(from: string | null, to: string | null): number | null {
  return from === null || to === null ? null : (Date.parse(to) - Date.parse(from)) / 1000;
}
