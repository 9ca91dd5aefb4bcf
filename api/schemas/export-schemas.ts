import { Type, type Static } from '@sinclair/typebox';
import { OneOf } from '../../domain/events/schema-parts.ts';
import { exportFormats, type ExportFormat } from '../exporting/export-formats.ts';
import { ReplayName } from './answer-schemas-replays.ts';
import { RunQuery } from './schemas.ts';

/** The schemas of what the exports take and answer. */

const instant = (description: string) => Type.Optional(Type.String({ maxLength: 64, description }));
const one = (description: string, maxLength: number) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }));

const howRows = {
  format: Type.Unsafe<ExportFormat>({
    ...OneOf(exportFormats),
    default: 'ndjson',
    description: 'a JSON object on each line, or CSV (RFC 4180) with a head',
  }),
  end_mark: Type.Boolean({
    default: false,
    description:
      'whether a last row says how many came: `{"end_of_export":{"rows":n}}`, in CSV `end_of_export,n`. For clients behind a proxy that hides where an answer broke off',
  }),
  after: Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'a position: the answer has seen at least that much',
    }),
  ),
};

const { task_id, success, state, trigger, start_time, end_time } = RunQuery.properties;

export const RunsExportQuery = Type.Object({
  ...howRows,
  cursor: one('the `id` of a run: goes on behind it', 64),
  since: instant('queued at or after this instant'),
  until: instant('queued before this instant'),
  ...{ task_id, success, state, trigger, start_time, end_time },
  view: Type.Optional(ReplayName),
});
export type RunsExportQuery = Static<typeof RunsExportQuery>;

export const EventsExportQuery = Type.Object({
  ...howRows,
  cursor: one('the `position` of an event: goes on behind it', 200),
  since: instant('occurred at or after this instant'),
  until: instant('occurred before this instant'),
  task_id: Type.Optional(
    Type.String({
      format: 'uuid',
      description: 'of one task: what was done to it, its fires, its runs, and what else names it',
    }),
  ),
  kind: one('of streams of these kinds, by commas: what stands before the first `-`', 400),
  type: one('of these types, by commas: `RunFailed,RunCanceled`', 2000),
  stream: one('of one stream', 400),
  actor: one("of one actor: an agent's id, or `service`", 64),
  source: one('from one address', 200),
  correlation_id: one('of one request: its `X-Request-Id`', 200),
});
export type EventsExportQuery = Static<typeof EventsExportQuery>;

/** Rows, for as long as there are any. */
export const exportedRows = Type.String({
  contentMediaType: 'application/x-ndjson',
  otherMediaTypes: ['text/csv'],
  description:
    'one row for each, as `format` says. An answer that breaks off ends without its last chunk, and without the end mark',
});
