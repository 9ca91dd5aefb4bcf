import { BEGINNING } from '../../domain/event-store.ts';
import { catalogue } from '../../domain/events/catalogue.ts';
import { isUuid } from '../../domain/ids.ts';
import { streamKinds } from '../../domain/streams.ts';
import type { KeptDocument, ReadModel } from '../../projections/read-model.ts';
import { runsProjection, type RunDocument } from '../../projections/views/runs.ts';
import { endpoint, type Answer, type Call, type Endpoint } from '../endpoint.ts';
import { badRequest } from '../errors.ts';
import { exportEvents } from '../exporting/event-rows.ts';
import type { ExportFormat, ExportedPart } from '../exporting/export-formats.ts';
import { eventsEndMark, runsEndMark } from '../exporting/end-mark.ts';
import { eventsOfLog } from '../exporting/log-source.ts';
import { sendRows, type Rows } from '../exporting/row-sending.ts';
import { exportRuns } from '../exporting/run-rows.ts';
import { checkPosition } from '../positions.ts';
import { EventsExportQuery, RunsExportQuery, exportedRows } from '../schemas/export-schemas.ts';
import { namesIn } from './history/audit-naming.ts';
import { auditScope, recordReading } from './history/audit-access.ts';
import { instantOfTask, instantsOf, zoneOfTask } from './history/instant.ts';
import { placeOfReading, viewRefusals } from './history/replay-reading.ts';

const runs = endpoint<unknown, RunsExportQuery>({
  method: 'get',
  paths: ['/runs/export'],
  operationId: 'exportRuns',
  summary: 'Exports runs as NDJSON or CSV, the first queued first',
  scopes: ['runs:read'],
  query: RunsExportQuery,
  reads: [runsProjection],
  answers: { 200: exportedRows },
  refusals: viewRefusals,
  async handle(call) {
    const { query } = call;
    const { dependencies } = await placeOfReading(call, 'GET /runs/export');
    const { readModel } = dependencies;
    const { since, until, start_time, end_time } = await instantsAsked(call, {
      since: query.since,
      until: query.until,
      start_time: query.start_time,
      end_time: query.end_time,
    });
    const { success, state, trigger, format } = query;
    const filter = {
      ...{ since, until, startTime: start_time, endTime: end_time, success, state, trigger },
      taskId: query.task_id?.toLowerCase(),
    };
    const names = namesIn(dependencies);
    const behind = await runOf(readModel, query.cursor);
    return rowsAnswer(call, {
      name: 'runs',
      endMark: runsEndMark,
      parts: () => exportRuns(readModel, format, filter, { behind, names }),
    });
  },
});

const events = endpoint<unknown, EventsExportQuery>({
  method: 'get',
  paths: ['/events/export'],
  operationId: 'exportEvents',
  summary: 'Exports events of the log as NDJSON or CSV, in its order',
  scopes: [auditScope],
  query: EventsExportQuery,
  answers: { 200: exportedRows },
  async handle(call) {
    const { dependencies, query } = call;
    const { store } = dependencies;
    const { format, stream, actor, source, correlation_id: correlationId, cursor } = query;
    const times = await instantsAsked(call, { since: query.since, until: query.until });
    const types = wordsIn('type', query.type, Object.keys(catalogue));
    const kinds = wordsIn('kind', query.kind, [...streamKinds(), 'demo'], 'ext_');
    if (cursor !== undefined) await checkPosition(store, 'cursor', cursor);
    const taskId = query.task_id?.toLowerCase();
    const filter = { ...times, types, kinds, taskId, stream, actor, source, correlationId };
    await recordReading(call, 'GET /events/export');
    return rowsAnswer(call, {
      name: 'events',
      endMark: eventsEndMark,
      parts(signal) {
        const part = { after: cursor ?? BEGINNING, stream, signal };
        return exportEvents(eventsOfLog(store, part), format, filter, namesIn(dependencies));
      },
    });
  },
});

/** Before `/runs/:run_id`, which would take it for an id. */
export const exportEndpoints: readonly Endpoint[] = [runs, events];

interface Exported {
  readonly name: Rows['name'];
  readonly endMark: (format: ExportFormat, rows: number) => string;
  readonly parts: (signal: AbortSignal) => AsyncGenerator<ExportedPart>;
}

type ExportCall = Call<unknown, { readonly format: ExportFormat; readonly end_mark: boolean }>;

/** Answers with rows, once there is a place for one more export. */
function rowsAnswer(call: ExportCall, { name, endMark, parts }: Exported): Answer {
  const { dependencies, query, caller } = call;
  const { format, end_mark } = query;
  return {
    body: null,
    stream: async (streaming) => {
      const giveBack = dependencies.exportPlaces.take(caller?.agentId ?? '');
      const ends = new AbortController();
      try {
        await sendRows(
          streaming,
          {
            ...{ name, format, ends, parts: parts(ends.signal) },
            endMark: end_mark ? (rows) => endMark(format, rows) : null,
          },
          dependencies,
        );
      } finally {
        giveBack();
      }
    },
  };
}

function instantsAsked<Field extends string>(
  { dependencies, query }: Call<unknown, { readonly task_id?: string }>,
  given: Readonly<Record<Field, string | undefined>>,
): Promise<Readonly<Record<Field, string | undefined>>> {
  const zoneOf = () => zoneOfTask(dependencies, query.task_id);
  return instantsOf(given, (field, text) => instantOfTask(field, text, zoneOf));
}

/** The run that a cursor names. @throws HttpError 400 where there is none */
async function runOf(
  readModel: ReadModel,
  cursor: string | undefined,
): Promise<KeptDocument<RunDocument> | undefined> {
  if (cursor === undefined) return undefined;
  const found = isUuid(cursor)
    ? await readModel.get(runsProjection, cursor.toLowerCase())
    : undefined;
  if (found) return found;
  throw badRequest([{ field: 'cursor', issue: 'must be the id of a run; `since` takes a time' }]);
}

/**
 * Names with commas between.
 * @param open how others begin that may be there too
 * @throws HttpError 400 for one that nothing has: no row would come, and nobody would know why
 */
function wordsIn(
  field: string,
  text: string | undefined,
  known: readonly string[],
  open?: string,
): readonly string[] | undefined {
  const names = text?.split(',').map((name) => name.trim());
  const isKnown = (name: string): boolean =>
    known.includes(name) || (open !== undefined && name.startsWith(open));
  const unknown = names?.find((name) => !isKnown(name));
  if (unknown === undefined) return names;
  const others = open === undefined ? '' : `, ${open}…`;
  const issue = `"${unknown}" is unknown; there are ${known.join(', ')}${others}`;
  throw badRequest([{ field, issue }]);
}
