import { csvLine } from '../../exporting/csv.ts';
import { eventColumns } from '../../exporting/event-rows.ts';
import { runColumns } from '../../exporting/run-rows.ts';
import type { Examples } from '../examples.ts';
import {
  agentId,
  created,
  due,
  ended,
  eventId,
  position,
  runId,
  started,
  taskId,
} from './values.ts';

const run = {
  id: runId,
  task_id: taskId,
  task_revision: 0,
  created_by: agentId,
  trigger: 'schedule',
  scheduled_for: due,
  priority: 5,
  queued_at: due,
  run_at: due,
  state: 'succeeded',
  skip_reason: null,
  attempt: 1,
  started_at: started,
  finished_at: ended,
  seconds: 1.167,
  late_seconds: 0.041,
  error: null,
  retry_of: null,
  parent_run_id: null,
  output: { steps: { count: 0 }, summary: { total_steps: 1, executed_steps: 1, skipped_steps: 0 } },
  task_title: 'Morning report',
  created_by_name: 'shop',
};

const event = {
  position,
  stream: `task-${taskId}`,
  revision: 1,
  type: 'TaskPaused',
  occurred_at: created,
  actor: agentId,
  source: '203.0.113.7',
  reason: 'less important',
  correlation_id: 'nightly-import-1',
  command_id: eventId,
  event_id: eventId,
  schema_version: '1',
  data: {},
  actor_name: 'shop',
  task_title: 'Morning report',
};
/** The same event as NDJSON has it: as it is recorded, with the names. */
const eventLine = {
  stream: event.stream,
  revision: 1,
  id: eventId,
  type: event.type,
  data: {},
  metadata: {
    actor: agentId,
    source: event.source,
    reason: event.reason,
    commandId: eventId,
    $correlationId: event.correlation_id,
    schemaVersion: '1',
    occurredAt: created,
  },
  actor_name: 'shop',
  task_title: event.task_title,
  position,
  created_at: created,
};

/** A head and one row. */
const csvOf = (
  columns: readonly string[],
  row: Readonly<Record<string, string | number | object | null>>,
) => csvLine(columns) + csvLine(columns.map((column) => row[column]));

export const exportExamples: Readonly<Record<string, Examples>> = {
  exportRuns: {
    parameters: { cursor: runId },
    responses: { 200: `${JSON.stringify(run)}\n` },
    otherMediaTypes: { 'text/csv': csvOf(runColumns, run) },
  },
  exportEvents: {
    parameters: { cursor: position },
    responses: { 200: `${JSON.stringify(eventLine)}\n` },
    otherMediaTypes: { 'text/csv': csvOf(eventColumns, event) },
  },
};
