import { endpoints } from '../../api/app.ts';
import { errorStatuses } from '../../api/errors.ts';
import { describedPath } from '../../api/serving/measuring.ts';
import { eventStoreErrorCodes } from '../../domain/event-store.ts';
import {
  causedKinds,
  removedKinds,
  runSkipReasons,
  sharedLimits,
  spanSkipReasons,
} from '../../domain/vocabulary.ts';
import type { counters } from '../../observability/metric-catalogue.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { Labels } from '../../observability/telemetry.ts';
import { auditChecks } from '../../scheduler/audit/audit.ts';
import { findingKinds } from '../../scheduler/audit/findings.ts';
import { countedCommands } from '../../stores/mongodb/command-counts.ts';
import { projections } from '../projecting/projections.ts';

type CounterName = keyof typeof counters;

/** Every combination of the labels' values. */
function each(labels: Readonly<Record<string, readonly string[]>>): readonly Labels[] {
  return Object.entries(labels).reduce<readonly Labels[]>(
    (made, [label, values]) =>
      made.flatMap((before) => values.map((value) => ({ ...before, [label]: value }))),
    [{}],
  );
}

/** The statuses of successful responses. */
const successes = ['200', '201', '202', '204', '304'];

/**
 * The series of each counter whose labels are known in advance. Left out: the routes of extensions, and their error
 * types.
 */
export const knownSeries: Partial<Record<CounterName, readonly Labels[]>> = {
  http_requests_total: endpoints.flatMap(({ method, paths }) =>
    paths.map((path) => ({ method: method.toUpperCase(), endpoint: describedPath(path) })),
  ),
  http_responses_total: each({
    status: [...new Set([...successes, ...Object.values(errorStatuses).map(String)])],
  }),
  task_executions_total: each({
    status: ['succeeded', 'failed', 'canceled', 'retrying', 'interrupted'],
  }),
  fires_total: each({
    outcome: [...new Set<string>(['run', ...spanSkipReasons, ...runSkipReasons])],
  }),
  loops_cut_total: each({ what: causedKinds }),
  scheduler_mended_total: each({ what: ['fire_without_run', 'key_without_run'] }),
  scheduler_audit_findings_total: each({ kind: findingKinds }),
  scheduler_audit_mended_total: each({ kind: findingKinds }),
  scheduler_audit_faults_total: each({ check: auditChecks }),
  limit_refusals_total: each({ limit: sharedLimits }),
  retention_removed_total: each({ kind: removedKinds }),
  artifact_failures_total: each({ code: ['unavailable', 'damaged'] }),
  lease_changes_total: each({
    lease: ['scheduler', 'projector', 'waits'],
    change: ['won', 'lost'],
  }),
  lease_failures_total: each({ lease: ['scheduler', 'projector', 'waits', 'heartbeat'] }),
  jobs_ended_total: each({ outcome: ['completed', 'failed', 'timed_out'] }),
  webhook_deliveries_total: each({ outcome: ['delivered', 'retried', 'failed'] }),
  // Conflicts are counted by the embedded log alone.
  event_store_failures_total: each({
    code: eventStoreErrorCodes.filter((code) => code !== 'CONFLICT'),
  }),
  ...ofViews([
    'projection_events_total',
    'projection_failures_total',
    'projection_parked_total',
    'projection_left_out_total',
  ]),
  eventstore_calls_total: each({
    call: ['append', 'read_stream', 'read_log', 'find_end', 'subscribe'],
  }),
  mongodb_commands_total: each({ command: countedCommands }),
  mongodb_errors_total: each({ kind: ['unreachable', 'refused'] }),
};

function ofViews(names: readonly CounterName[]): Partial<Record<CounterName, readonly Labels[]>> {
  const labels = each({ projection: projections.map(({ name }) => name) });
  return Object.fromEntries(names.map((name) => [name, labels]));
}

/**
 * Starts every known series at 0: Prometheus cannot compute an increase from a series' first value.
 * @param extensions the ids of those that were found
 */
export function beginKnownSeries(metrics: Metrics, extensions: readonly string[]): void {
  for (const [name, series] of Object.entries(knownSeries)) {
    for (const labels of series) metrics.count(name, labels, 0);
  }
  for (const extension of extensions) metrics.count('extension_blocked_total', { extension }, 0);
}
