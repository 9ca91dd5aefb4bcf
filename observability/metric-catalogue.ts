/** What a metric tells, and by which labels. The values of a label come from a closed set. */
export interface MetricDefinition {
  readonly help: string;
  readonly labels: readonly string[];
}

export interface HistogramDefinition extends MetricDefinition {
  /** Upper bounds, ascending. */
  readonly buckets: readonly number[];
}

/** From half a millisecond to ten seconds: requests and single operations. */
const operationBuckets = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** From a millisecond to an hour: lateness, which grows without limit while something is down. */
const latenessBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 3600];

/** Every counter there is. A name that is not here can't be counted. */
export const counters = {
  http_requests_total: {
    help: 'HTTP requests answered, by method and route.',
    labels: ['method', 'endpoint'],
  },
  http_responses_total: {
    help: 'HTTP requests answered, by status code.',
    labels: ['status'],
  },
  task_executions_total: {
    help: 'Runs that ended, by how.',
    labels: ['status'],
  },
  fires_total: {
    help: 'Nominal times decided: run, or the reason for not running.',
    labels: ['outcome'],
  },
  scheduler_lost_races_total: {
    help: 'Fires that another process had decided first.',
    labels: [],
  },
  scheduler_mended_total: {
    help: 'Faults that the audit of the scheduler found and mended.',
    labels: ['what'],
  },
  scheduler_audit_findings_total: {
    help: 'What the audit found that was not as it should be.',
    labels: ['kind'],
  },
  scheduler_audit_mended_total: {
    help: 'Findings of the audit that are as they should be again.',
    labels: ['kind'],
  },
  retention_removed_total: {
    help: 'Records that were taken out of the log after their time.',
    labels: ['kind'],
  },
  scheduler_audit_faults_total: {
    help: 'Looks of the audit that failed.',
    labels: ['check'],
  },
  run_faults_total: {
    help: 'Times that a run could not be led on by a worker, and was put off.',
    labels: [],
  },
  worker_lost_races_total: {
    help: 'Runs that another process had moved on first.',
    labels: [],
  },
  runs_taken_over_total: {
    help: 'Runs taken over from a worker that was gone.',
    labels: [],
  },
  lease_changes_total: {
    help: 'Times that this process won or lost a lease of which one process has its turn.',
    labels: ['lease', 'change'],
  },
  lease_failures_total: {
    help: 'Times that a lease or the heartbeat of this process could not be renewed.',
    labels: ['lease'],
  },
  webhook_deliveries_total: {
    help: 'Attempts to send a message to a webhook, by what came of them.',
    labels: ['outcome'],
  },
  event_log_events_total: {
    help: 'Events appended to the embedded log by this process.',
    labels: [],
  },
  event_log_conflicts_total: {
    help: 'Appends to the embedded log that were refused.',
    labels: [],
  },
  event_store_failures_total: {
    help: 'Appends that the log did not take, other than for a lost race, by why.',
    labels: ['code'],
  },
  projection_events_total: {
    help: 'Events folded into the views that are read.',
    labels: ['projection'],
  },
  projection_failures_total: {
    help: 'Batches that could not be folded into a view and were tried again.',
    labels: ['projection'],
  },
  projection_parked_total: {
    help: 'Documents parked because an event could not be folded into them.',
    labels: ['projection'],
  },
  projection_left_out_total: {
    help: 'Times that an event was left out of a document, as it was skipped before and still can not be folded.',
    labels: ['projection'],
  },
  eventstore_append_retries_total: {
    help: 'Appends to EventStoreDB made again because their outcome was unknown.',
    labels: [],
  },
  eventstore_resubscriptions_total: {
    help: 'Subscriptions to EventStoreDB made again after they were lost.',
    labels: [],
  },
  mongodb_errors_total: {
    help: 'Operations that MongoDB did not carry out: unreachable, or refused.',
    labels: ['kind'],
  },
  extension_requests_total: {
    help: 'Requests that extensions were asked to answer, by route.',
    labels: ['extension', 'endpoint', 'method', 'status'],
  },
  extension_errors_total: {
    help: 'Faults of extensions, by where they were met.',
    labels: ['extension', 'endpoint', 'error_type'],
  },
  extension_blocked_total: {
    help: 'Times that an extension kept the event loop to itself for over a second, once they are over.',
    labels: ['extension'],
  },
} as const satisfies Record<string, MetricDefinition>;

/** Every histogram there is; durations are in seconds. */
export const histograms = {
  http_request_seconds: {
    help: 'Time from the arrival of a request to the end of its answer.',
    labels: ['method', 'endpoint'],
    buckets: operationBuckets,
  },
  extension_request_duration_seconds: {
    help: 'Time that an extension took for a request, by route.',
    labels: ['extension', 'endpoint', 'method'],
    buckets: operationBuckets,
  },
  fire_lateness_seconds: {
    help: 'Time from a nominal time to the decision to run.',
    labels: [],
    buckets: latenessBuckets,
  },
  scheduler_audit_duration_seconds: {
    help: 'Time that a pass of the audit took, its rests included.',
    labels: [],
    buckets: latenessBuckets,
  },
  run_start_lateness_seconds: {
    help: 'Time from when a run was due to its start.',
    labels: [],
    buckets: latenessBuckets,
  },
  task_execution_seconds: {
    help: 'Time from the first start of a run to its end, or to the end of an attempt that is tried again.',
    labels: ['status'],
    buckets: latenessBuckets,
  },
  tool_call_seconds: {
    help: 'Time that a call of a tool took, of those that do not answer at once.',
    labels: ['tool', 'outcome'],
    buckets: latenessBuckets,
  },
  webhook_delivery_seconds: {
    help: 'Time that an attempt to send to a webhook took.',
    labels: [],
    buckets: operationBuckets,
  },
  read_wait_seconds: {
    help: 'Time that a read waited for its view to pass what it was to see.',
    labels: ['projection'],
    buckets: operationBuckets,
  },
  event_store_append_seconds: {
    help: 'Time from asking for an append to its answer; of the embedded log the longest of each commit.',
    labels: [],
    buckets: operationBuckets,
  },
  event_log_commit_seconds: {
    help: 'Time that a commit of the embedded log took, until it was durable.',
    labels: [],
    buckets: operationBuckets,
  },
  event_log_lock_wait_seconds: {
    help: 'Time that a commit of the embedded log waited for other processes.',
    labels: [],
    buckets: operationBuckets,
  },
  mongodb_operation_seconds: {
    help: 'Time that an operation of MongoDB took.',
    labels: ['operation'],
    buckets: operationBuckets,
  },
} as const satisfies Record<string, HistogramDefinition>;

/** Every gauge there is: present amounts, asked for when the metrics are read. */
export const gauges = {
  service_info: { help: 'What runs here; always 1.', labels: ['version', 'roles'] },
  service_ready: { help: '1 while /health/ready of this process says so, else 0.', labels: [] },
  health_status: {
    help: 'What /health says of a part: 0 healthy, 1 degraded, 2 unhealthy.',
    labels: ['check'],
  },
  members_alive: { help: 'Processes that say that they are alive, by role.', labels: ['role'] },
  lease_held: { help: '1 while this process has a lease, else 0.', labels: ['lease'] },
  scheduler_tasks: { help: 'Tasks that the scheduler of this process has in mind.', labels: [] },
  scheduler_overdue_seconds: {
    help: 'How long the earliest undecided fire has been due; only of the process that leads.',
    labels: [],
  },
  scheduler_held: { help: '1 while operators hold all fires and runs, else 0.', labels: [] },
  scheduler_audit_last_success_timestamp: {
    help: 'When this process ended a pass of the audit in which every check could look, in seconds since 1970.',
    labels: [],
  },
  runs_under_way: { help: 'Runs that this process carries out now.', labels: [] },
  run_slots: { help: 'Runs that this process may carry out at a time.', labels: [] },
  run_slots_full_seconds: {
    help: 'How long runs have been waiting while all slots of this worker were taken; 0 while that is not so.',
    labels: [],
  },
  runs_waiting: { help: 'Runs that are due and that no worker has taken.', labels: [] },
  webhooks_waiting: {
    help: 'Messages to webhooks that are still to be delivered; only of the process that leads.',
    labels: [],
  },
  live_clients: { help: 'Clients that watch runs as they change.', labels: [] },
  projection_lag_seconds: {
    help: 'How far a projection is behind the end of the log; 0 when it has caught up.',
    labels: ['projection'],
  },
  projection_parked_documents: {
    help: 'Documents that are held back now because an event could not be folded into them.',
    labels: ['projection'],
  },
  projection_rebuild_progress: {
    help: 'How far a rebuild under way is, from 0 to 1.',
    labels: ['projection'],
  },
  data_directory_free_bytes: {
    help: 'What is left on the disk of the data directory.',
    labels: [],
  },
  event_log_bytes: { help: 'Size of the embedded log, with what is not merged yet.', labels: [] },
  extension_state: {
    help: '1 for the state in which an extension is.',
    labels: ['extension', 'state'],
  },
  extension_active_connections: {
    help: 'Requests and WebSockets of extensions that are under way.',
    labels: ['extension', 'endpoint'],
  },
} as const satisfies Record<string, MetricDefinition>;

export type GaugeName = keyof typeof gauges;
