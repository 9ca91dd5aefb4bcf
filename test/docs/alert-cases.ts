/** How an alert fires and clears: the values of each series per minute, in promtool's notation. */
export interface AlertCase {
  readonly alert: string;
  readonly series: Readonly<Record<string, string>>;
  /** Minutes after the first value. */
  readonly fires: number;
  readonly clears: number;
}

/** A series by its name and labels, including those that Prometheus adds. */
const of = (name: string, labels = ''): string =>
  `${name}{job="svc",instance="a"${labels === '' ? '' : `,${labels}`}}`;

/** A gauge that has one value for some minutes, then another. */
const gauge = (name: string, labels: string, value: number, minutes: number, then: number) => ({
  [of(name, labels)]: `${value}x${minutes} ${then}x20`,
});

/** A counter that had its value before the first scrape, and never grows after it. */
const counted = (name: string, labels: string, value: number) => ({
  [of(name, labels)]: `${value}x120`,
});

/**
 * A histogram in which every value of the first 20 minutes lies between two bounds, and none
 * follows.
 */
const slow = (name: string, above: number, below: number, labels = '') => {
  const bucket = (le: string): string => of(`${name}_bucket`, `le="${le}"${labels}`);
  const all = '0+10x20 200x40';
  return { [bucket(String(above))]: '0x60', [bucket(String(below))]: all, [bucket('+Inf')]: all };
};

/** Every alert at least once. For a rule with several conditions, each of them. */
export const alertCases: readonly AlertCase[] = [
  { alert: 'ServiceGone', series: { [of('service_info')]: '_x5 1x20' }, fires: 3, clears: 7 },
  { alert: 'ServiceNotReady', series: gauge('service_ready', '', 0, 5, 1), fires: 4, clears: 7 },
  {
    alert: 'PartUnhealthy',
    series: gauge('health_status', 'check="scheduler"', 2, 5, 0),
    fires: 3,
    clears: 7,
  },
  {
    alert: 'PartDegraded',
    series: gauge('health_status', 'check="workers"', 1, 20, 0),
    fires: 16,
    clears: 22,
  },
  {
    alert: 'RequestsFail',
    series: {
      [of('http_responses_total', 'status="500"')]: '0+10x15 150x30',
      [of('http_responses_total', 'status="200"')]: '0+10x45',
    },
    fires: 8,
    clears: 25,
  },
  {
    alert: 'RequestsSlow',
    series: slow('http_request_seconds', 1, 2.5, ',endpoint="/tasks",method="GET"'),
    fires: 15,
    clears: 40,
  },
  {
    alert: 'NothingLeadsTheScheduler',
    series: gauge('lease_held', 'lease="scheduler"', 0, 5, 1),
    fires: 3,
    clears: 7,
  },
  {
    alert: 'NothingProjects',
    series: gauge('lease_held', 'lease="projector"', 0, 5, 1),
    fires: 3,
    clears: 7,
  },
  {
    alert: 'SchedulerBehind',
    series: gauge('scheduler_overdue_seconds', '', 20, 5, 0),
    fires: 4,
    clears: 7,
  },
  { alert: 'FiresLate', series: slow('fire_lateness_seconds', 5, 15), fires: 15, clears: 45 },
  {
    alert: 'FiresMissed',
    series: counted('fires_total', 'outcome="missed"', 103),
    fires: 1,
    clears: 20,
  },
  { alert: 'HeldForLong', series: gauge('scheduler_held', '', 1, 70, 0), fires: 62, clears: 72 },
  {
    alert: 'AuditFinds',
    series: counted('scheduler_audit_findings_total', 'kind="task_stuck"', 2),
    fires: 1,
    clears: 20,
  },
  {
    alert: 'AuditDoesNotPass',
    series: counted('scheduler_audit_faults_total', 'check="index_agrees"', 11),
    fires: 6,
    clears: 20,
  },
  {
    alert: 'AuditDoesNotPass',
    series: { [of('scheduler_audit_last_success_timestamp')]: '0x20 1260+60x20' },
    fires: 17,
    clears: 23,
  },
  {
    // For a leading process whose audit has never passed.
    alert: 'AuditDoesNotPass',
    series: {
      [of('process_start_time_seconds')]: '0x50',
      [of('lease_held', 'lease="scheduler"')]: '1x50',
      [of('scheduler_audit_last_success_timestamp')]: '_x20 1260+60x20',
    },
    fires: 17,
    clears: 23,
  },
  {
    alert: 'LeasesNotRenewed',
    series: counted('lease_failures_total', 'lease="heartbeat"', 4),
    fires: 1,
    clears: 8,
  },
  {
    alert: 'RunsFail',
    series: {
      ...counted('task_executions_total', 'status="failed"', 10),
      ...counted('task_executions_total', 'status="succeeded"', 10),
    },
    fires: 12,
    clears: 35,
  },
  {
    alert: 'RunsStartLate',
    series: slow('run_start_lateness_seconds', 60, 300),
    fires: 15,
    clears: 45,
  },
  {
    alert: 'QueueGrows',
    series: { [of('runs_waiting')]: '600+10x40 100x40' },
    fires: 20,
    clears: 45,
  },
  {
    alert: 'RunsWaitForSlots',
    series: gauge('run_slots_full_seconds', '', 400, 5, 0),
    fires: 3,
    clears: 7,
  },
  { alert: 'RunsTakenOver', series: counted('runs_taken_over_total', '', 1), fires: 1, clears: 20 },
  { alert: 'RunsTakenOver', series: counted('run_faults_total', '', 11), fires: 1, clears: 20 },
  {
    alert: 'NothingLeadsTheWaits',
    series: gauge('lease_held', 'lease="waits"', 0, 5, 1),
    fires: 3,
    clears: 7,
  },
  { alert: 'WaitsEndLate', series: slow('wait_lateness_seconds', 5, 15), fires: 15, clears: 45 },
  {
    alert: 'JobsWithoutWorker',
    series: gauge('jobs_unserved', '', 3, 15, 0),
    fires: 12,
    clears: 17,
  },
  {
    alert: 'ProjectionBehind',
    series: gauge('projection_lag_seconds', 'projection="runs"', 60, 10, 0),
    fires: 6,
    clears: 12,
  },
  {
    alert: 'ProjectionFails',
    series: counted('projection_failures_total', 'projection="runs"', 4),
    fires: 6,
    clears: 12,
  },
  {
    alert: 'DocumentsParked',
    series: gauge('projection_parked_documents', 'projection="runs"', 1, 5, 0),
    fires: 3,
    clears: 7,
  },
  {
    alert: 'AppendsFail',
    series: counted('event_store_failures_total', 'code="UNAVAILABLE"', 1),
    fires: 3,
    clears: 8,
  },
  {
    alert: 'AppendsSlow',
    series: slow('event_store_append_seconds', 1, 2.5),
    fires: 15,
    clears: 45,
  },
  {
    alert: 'DiskFillsUp',
    series: gauge('data_directory_free_bytes', '', 1e9, 20, 9e9),
    fires: 16,
    clears: 22,
  },
  {
    // A billion bytes a minute.
    alert: 'DiskFillsUp',
    series: { [of('data_directory_free_bytes')]: '100000000000-1000000000x90 10000000000x400' },
    fires: 77,
    clears: 470,
  },
  {
    alert: 'EventStoreDBLost',
    series: counted('eventstore_append_retries_total', '', 11),
    fires: 1,
    clears: 15,
  },
  {
    alert: 'EventStoreDBLost',
    series: counted('eventstore_resubscriptions_total', '', 11),
    fires: 1,
    clears: 15,
  },
  {
    alert: 'MongoDBFails',
    series: counted('mongodb_errors_total', 'kind="unreachable"', 6),
    fires: 6,
    clears: 15,
  },
  {
    alert: 'WebhooksFail',
    series: counted('webhook_deliveries_total', 'outcome="failed"', 1),
    fires: 1,
    clears: 70,
  },
  {
    alert: 'WebhooksWait',
    series: gauge('webhooks_waiting', '', 1500, 40, 0),
    fires: 31,
    clears: 42,
  },
  {
    alert: 'ExtensionFailed',
    series: gauge('extension_state', 'extension="a",state="failed"', 1, 5, 0),
    fires: 1,
    clears: 7,
  },
  {
    alert: 'ExtensionFaults',
    series: counted(
      'extension_errors_total',
      'extension="a",endpoint="none",error_type="Error"',
      11,
    ),
    fires: 1,
    clears: 20,
  },
  {
    alert: 'EventLoopBlocked',
    series: gauge('nodejs_eventloop_lag_p99_seconds', '', 1, 10, 0),
    fires: 6,
    clears: 12,
  },
];
