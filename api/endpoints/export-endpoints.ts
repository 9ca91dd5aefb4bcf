import { BEGINNING } from '../../domain/event-store.ts';
import { catalogue } from '../../domain/events/catalogue.ts';
import { isUuid } from '../../domain/ids.ts';
import { namespaceOf } from '../../domain/namespaces/namespace.ts';
import { streamKinds } from '../../domain/streams.ts';
import { reaches } from '../../projections/reach.ts';
import type { ViewDocument, ReadModel } from '../../projections/read-model.ts';
import { runsProjection, type RunDocument } from '../../projections/views/runs.ts';
import { endpoint, type EndpointResponse, type Call, type Endpoint } from '../endpoint.ts';
import { badRequest } from '../errors.ts';
import { exportEvents } from '../exporting/event-rows.ts';
import type { ExportFormat, ExportedPart } from '../exporting/export-formats.ts';
import { eventsEndMark, runsEndMark } from '../exporting/end-mark.ts';
import { eventsOfLog } from '../exporting/log-source.ts';
import { sendRows } from '../exporting/row-sending.ts';
import { exportRuns } from '../exporting/run-rows.ts';
import { checkPosition } from '../positions.ts';
import { EventsExportQuery, RunsExportQuery, exportedRows } from '../schemas/export-schemas.ts';
import { ownTasks, type Seeing } from './lookup.ts';
import { streamsInReach } from './history/streams-in-reach.ts';
import { namesIn } from './history/audit-naming.ts';
import { auditScope, recordReading } from './history/audit-access.ts';
import { instantOfTask, instantsOf, zoneOfTask } from './history/instant.ts';
import { placeOfReading, viewRefusals } from './history/replay-reading.ts';

const runs = endpoint('GET /runs/export', {
  operationId: 'exportRuns',
  summary: 'Exports runs as NDJSON or CSV, in the order in which they were queued',
  scopes: ['runs:read'],
  acceptsOwn: true,
  query: RunsExportQuery,
  reads: [runsProjection],
  responses: { 200: exportedRows },
  refusals: viewRefusals,
  async handle(call) {
    const { dependencies } = await placeOfReading(call);
    const { readModel } = dependencies;
    const { since, until, start_time, end_time, cursor, format, ...rest } = call.query;
    const times = await instantsIn(call, { since, until, start_time, end_time });
    const { success, state, trigger } = rest;
    const taskId = rest.task_id?.toLowerCase();
    const { reach } = call;
    const only = await ownTasks(call);
    const filter = { reach, ...times, success, state, trigger, taskId, only };
    const names = namesIn(call);
    const behind = await runOf(readModel, cursor, call);
    const parts = () =>
      exportRuns(readModel, format, filter, { behind, names, params: dependencies });
    return rowsResponse(call, { name: 'runs', endMark: runsEndMark, parts });
  },
});

const events = endpoint('GET /events/export', {
  operationId: 'exportEvents',
  summary: 'Exports events as NDJSON or CSV, in the order of the log',
  scopes: [auditScope],
  query: EventsExportQuery,
  responses: { 200: exportedRows },
  async handle(call) {
    const { dependencies, query } = call;
    const { store } = dependencies;
    const { format, stream, actor, source, correlation_id: correlationId, cursor } = query;
    const times = await instantsIn(call, { since: query.since, until: query.until });
    const types = listOf('type', query.type, Object.keys(catalogue));
    const kinds = listOf('kind', query.kind, [...streamKinds(), 'demo'], 'ext_');
    if (cursor !== undefined) await checkPosition(store, 'cursor', cursor);
    const taskId = query.task_id?.toLowerCase();
    const filter = { ...times, types, kinds, taskId, stream, actor, source, correlationId };
    await recordReading(call);
    const parts = (signal: AbortSignal) => {
      const isVisible = streamsInReach(call);
      const log = eventsOfLog(store, { after: cursor ?? BEGINNING, stream, signal, isVisible });
      return exportEvents(log, format, filter, namesIn(call));
    };
    return rowsResponse(call, { name: 'events', endMark: eventsEndMark, parts });
  },
});

/** Must precede `/runs/:run_id`, which would take `export` for an id. */
export const exportEndpoints: readonly Endpoint[] = [runs, events];

interface Export {
  readonly name: string;
  readonly endMark: (format: ExportFormat, rows: number) => string;
  readonly parts: (signal: AbortSignal) => AsyncGenerator<ExportedPart>;
}

type ExportCall = Call<unknown, { readonly format: ExportFormat; readonly end_mark: boolean }>;

/** Responds with rows. @throws HttpError 503 if too many exports are running */
function rowsResponse(
  { dependencies, query, caller }: ExportCall,
  { name, endMark, parts }: Export,
): EndpointResponse {
  const { format, end_mark } = query;
  return {
    stream: async (streaming) => {
      const release = dependencies.exportPlaces.take(caller?.agentId ?? '');
      const stop = new AbortController();
      const lastRow = end_mark ? (rows: number) => endMark(format, rows) : null;
      const rows = { name, format, stop, parts: parts(stop.signal), endMark: lastRow };
      try {
        await sendRows(streaming, rows, dependencies);
      } finally {
        release();
      }
    },
  };
}

function instantsIn<Field extends string>(
  call: Call<unknown, { readonly task_id?: string }>,
  given: Readonly<Record<Field, string | undefined>>,
): Promise<Readonly<Record<Field, string | undefined>>> {
  const zoneOf = () => zoneOfTask(call, call.query.task_id);
  return instantsOf(given, (field, value) => instantOfTask(field, value, zoneOf));
}

/** The run that a cursor names. @throws HttpError 400 for an unknown one */
async function runOf(
  readModel: ReadModel,
  cursor: string | undefined,
  { reach, own }: Seeing,
): Promise<ViewDocument<RunDocument> | undefined> {
  if (cursor === undefined) return undefined;
  const isId = isUuid(cursor);
  const found = isId ? await readModel.get(runsProjection, cursor.toLowerCase()) : null;
  if (found !== null && reaches(reach, namespaceOf(found.document))) {
    if (own === null || own === found.document.created_by) return found;
  }
  throw badRequest([{ field: 'cursor', issue: 'must be the id of a run; `since` takes a time' }]);
}

/**
 * Names separated by commas.
 * @param prefix names that begin with it are allowed, too
 * @throws HttpError 400 for an unknown name, which would select no rows
 */
function listOf(
  field: string,
  given: string | undefined,
  known: readonly string[],
  prefix?: string,
): readonly string[] | undefined {
  const names = given?.split(',').map((name) => name.trim());
  const isKnown = (name: string): boolean =>
    known.includes(name) || (prefix !== undefined && name.startsWith(prefix));
  const unknown = names?.find((name) => !isKnown(name));
  if (unknown === undefined) return names;
  const others = prefix === undefined ? '' : `, ${prefix}…`;
  const issue = `"${unknown}" is unknown; there are ${known.join(', ')}${others}`;
  throw badRequest([{ field, issue }]);
}
