import { Type, type Static } from '@sinclair/typebox';
import { OneOf } from '../../domain/events/schema-parts.ts';
import { exportFormats, type ExportFormat } from '../exporting/export-formats.ts';
import { ReplayName } from './response-schemas-replays.ts';
import { RunQuery } from './schemas.ts';

/** Requests and responses of exports. */

const instant = (description: string) => Type.Optional(Type.String({ maxLength: 64, description }));
const one = (description: string, maxLength: number) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }));

const howRows = {
  format: Type.Unsafe<ExportFormat>({
    ...OneOf(exportFormats),
    default: 'ndjson',
    description: 'one JSON object per line, or CSV (RFC 4180) with a header line',
  }),
  end_mark: Type.Boolean({
    default: false,
    description:
      'whether to add a last row with the number of rows: `{"end_of_export":{"rows":n}}`, or `end_of_export,n` in CSV. Use it if a proxy hides that a response broke off',
  }),
  after: Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'a position that the response must have reached',
    }),
  ),
};

const { task_id, success, state, trigger, start_time, end_time } = RunQuery.properties;

export const RunsExportQuery = Type.Object({
  ...howRows,
  cursor: one('`id` of a run; continues after it', 64),
  since: instant('queued at or after this instant'),
  until: instant('queued before this instant'),
  task_id,
  success,
  state,
  trigger,
  start_time,
  end_time,
  view: Type.Optional(ReplayName),
});
export type RunsExportQuery = Static<typeof RunsExportQuery>;

export const EventsExportQuery = Type.Object({
  ...howRows,
  cursor: one('`position` of an event; continues after it', 200),
  since: instant('occurred at or after this instant'),
  until: instant('occurred before this instant'),
  task_id: Type.Optional(
    Type.String({
      format: 'uuid',
      description:
        'only events of this task: its commands, fires and runs, and other events that name it',
    }),
  ),
  kind: one(
    'kinds of streams, separated by commas: the part of the name before the first `-`',
    400,
  ),
  type: one('event types, separated by commas: `RunFailed,RunCanceled`', 2000),
  stream: one('events of one stream', 400),
  actor: one("events of one actor: an agent's id, or `service`", 64),
  source: one('events from one address', 200),
  correlation_id: one('events of one request: its `X-Request-Id`', 200),
});
export type EventsExportQuery = Static<typeof EventsExportQuery>;

/** A stream of rows. */
export const exportedRows = Type.String({
  contentMediaType: 'application/x-ndjson',
  otherMediaTypes: ['text/csv'],
  description:
    'one row per item, in the chosen `format`. A truncated response lacks its last chunk and the end mark',
});
