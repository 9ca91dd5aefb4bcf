/** A metric and its labels. Label values come from a closed set. */
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

/** From a millisecond to an hour: lateness, which has no upper limit during an outage. */
const latenessBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 3600];

/** All counters. */
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
    help: 'Ended runs, by result.',
    labels: ['status'],
  },
  fires_total: {
    help: 'Decided fires, by outcome: run, or the reason for skipping.',
    labels: ['outcome'],
  },
  scheduler_lost_races_total: {
    help: 'Races for a fire lost to another process.',
    labels: [],
  },
  scheduler_mended_total: {
    help: "Problems that the scheduler's audit found and repaired.",
    labels: ['what'],
  },
  scheduler_audit_findings_total: {
    help: 'Findings of the audit, by kind.',
    labels: ['kind'],
  },
  scheduler_audit_mended_total: {
    help: 'Repaired findings of the audit, by kind.',
    labels: ['kind'],
  },
  retention_removed_total: {
    help: 'Records that retention removed from the log.',
    labels: ['kind'],
  },
  artifacts_written_total: {
    help: 'Results written to the store of artifacts.',
    labels: [],
  },
  artifact_bytes_written_total: {
    help: 'Bytes of these results.',
    labels: [],
  },
  artifacts_removed_total: {
    help: 'Artifacts that retention removed.',
    labels: [],
  },
  artifact_failures_total: {
    help: 'Failed calls of the store of artifacts, by code.',
    labels: ['code'],
  },
  scheduler_audit_faults_total: {
    help: 'Failed checks of the audit.',
    labels: ['check'],
  },
  run_faults_total: {
    help: 'Times that a worker could not continue a run and postponed it.',
    labels: [],
  },
  worker_lost_races_total: {
    help: 'Races for a run lost to another process.',
    labels: [],
  },
  loops_cut_total: {
    help: 'Runs and events rejected because their chain of causes had reached its limit, by kind.',
    labels: ['what'],
  },
  runs_taken_over_total: {
    help: 'Runs taken over from a dead worker.',
    labels: [],
  },
  lease_changes_total: {
    help: 'Times that this process won or lost a lease.',
    labels: ['lease', 'change'],
  },
  lease_failures_total: {
    help: 'Failed renewals of a lease or the heartbeat of this process.',
    labels: ['lease'],
  },
  jobs_leased_total: {
    help: 'Jobs given to workers.',
    labels: [],
  },
  jobs_ended_total: {
    help: 'Jobs whose result or failure was accepted, by outcome.',
    labels: ['outcome'],
  },
  job_answers_refused_total: {
    help: 'Results, failures and heartbeats of workers that had lost the job.',
    labels: [],
  },
  job_leases_lost_total: {
    help: 'Jobs that were given to another worker because the first fell silent.',
    labels: [],
  },
  limit_refusals_total: {
    help: 'Requests and connections that were refused, by the limit or quota.',
    labels: ['limit'],
  },
  webhook_deliveries_total: {
    help: 'Attempts to send a message to a webhook, by outcome.',
    labels: ['outcome'],
  },
  event_log_events_total: {
    help: 'Events appended to the embedded log by this process.',
    labels: [],
  },
  event_log_conflicts_total: {
    help: 'Appends to the embedded log that were rejected for a conflict.',
    labels: [],
  },
  event_store_failures_total: {
    help: 'Failed appends other than lost races, by error code.',
    labels: ['code'],
  },
  projection_events_total: {
    help: 'Events applied to live views.',
    labels: ['projection'],
  },
  projection_failures_total: {
    help: 'Batches that could not be applied to a view and were retried.',
    labels: ['projection'],
  },
  projection_parked_total: {
    help: 'Documents parked because an event could not be applied.',
    labels: ['projection'],
  },
  projection_left_out_total: {
    help: 'Times that a skipped event was left out of a document because it still cannot be applied.',
    labels: ['projection'],
  },
  eventstore_calls_total: {
    help: 'Calls to EventStoreDB, repeated ones included, by kind.',
    labels: ['call'],
  },
  eventstore_append_retries_total: {
    help: 'Appends to EventStoreDB retried because their outcome was unknown.',
    labels: [],
  },
  eventstore_resubscriptions_total: {
    help: 'Lost subscriptions to EventStoreDB that were renewed.',
    labels: [],
  },
  mongodb_commands_total: {
    help: 'Commands sent to MongoDB, by name.',
    labels: ['command'],
  },
  mongodb_documents_total: {
    help: 'Documents sent to MongoDB to be written: inserts, updates and deletes.',
    labels: [],
  },
  mongodb_errors_total: {
    help: 'Failed operations of MongoDB: unreachable, or rejected.',
    labels: ['kind'],
  },
  extension_requests_total: {
    help: 'Requests to extensions, by route.',
    labels: ['extension', 'endpoint', 'method', 'status'],
  },
  extension_errors_total: {
    help: 'Failures of extensions, by place.',
    labels: ['extension', 'endpoint', 'error_type'],
  },
  extension_blocked_total: {
    help: 'Times that an extension blocked the event loop for over a second, counted afterwards.',
    labels: ['extension'],
  },
} as const satisfies Record<string, MetricDefinition>;

/** All histograms. Durations are in seconds. */
export const histograms = {
  http_request_seconds: {
    help: 'Time from the arrival of a request to the end of its response.',
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
    help: 'Duration of a pass of the audit, pauses included.',
    labels: [],
    buckets: latenessBuckets,
  },
  run_start_lateness_seconds: {
    help: 'Time from the due time of a run to its start.',
    labels: [],
    buckets: latenessBuckets,
  },
  wait_lateness_seconds: {
    help: 'Time from the end of a timer, or the limit of another wait, to the resumption of its step.',
    labels: [],
    buckets: latenessBuckets,
  },
  task_execution_seconds: {
    help: 'Time from the first start of a run to its end, or to the end of an attempt that is tried again.',
    labels: ['status'],
    buckets: latenessBuckets,
  },
  tool_call_seconds: {
    help: 'Duration of tool calls, without tools that return at once.',
    labels: ['tool', 'outcome'],
    buckets: latenessBuckets,
  },
  webhook_delivery_seconds: {
    help: 'Duration of an attempt to send to a webhook.',
    labels: [],
    buckets: operationBuckets,
  },
  read_wait_seconds: {
    help: 'Time that a read waited for its view to reach the requested position.',
    labels: ['projection'],
    buckets: operationBuckets,
  },
  event_store_append_seconds: {
    help: 'Duration of an append; for the embedded log, the longest of each commit.',
    labels: [],
    buckets: operationBuckets,
  },
  event_log_commit_seconds: {
    help: 'Duration of a commit of the embedded log, until it is durable.',
    labels: [],
    buckets: operationBuckets,
  },
  event_log_lock_wait_seconds: {
    help: 'Time that a commit of the embedded log waited for other processes.',
    labels: [],
    buckets: operationBuckets,
  },
  mongodb_operation_seconds: {
    help: 'Duration of an operation of MongoDB.',
    labels: ['operation'],
    buckets: operationBuckets,
  },
} as const satisfies Record<string, HistogramDefinition>;

/** All gauges. They are read when the metrics are requested. */
export const gauges = {
  service_info: {
    help: 'Version and roles of this process; always 1.',
    labels: ['version', 'roles'],
  },
  service_ready: { help: '1 while this process is ready (/health/ready), else 0.', labels: [] },
  health_status: {
    help: 'Status of a part in /health: 0 healthy, 1 degraded, 2 unhealthy.',
    labels: ['check'],
  },
  members_alive: { help: 'Processes with a current heartbeat, by role.', labels: ['role'] },
  lease_held: { help: '1 while this process holds the lease, else 0.', labels: ['lease'] },
  scheduler_tasks: { help: "Tasks in the memory of this process's scheduler.", labels: [] },
  scheduler_overdue_seconds: {
    help: 'How long the earliest undecided fire has been due; only in the leading process.',
    labels: [],
  },
  scheduler_held: { help: '1 while operators hold all fires and runs, else 0.', labels: [] },
  scheduler_audit_last_success_timestamp: {
    help: 'End of the last audit in this process in which every check succeeded, in seconds since 1970.',
    labels: [],
  },
  runs_under_way: { help: 'Runs that this process is executing.', labels: [] },
  run_slots: { help: 'Slots of this worker: its maximum concurrent runs.', labels: [] },
  run_slots_full_seconds: {
    help: 'How long runs have been waiting because all slots of this worker are taken; 0 otherwise.',
    labels: [],
  },
  runs_waiting: { help: 'Due runs that no worker has taken.', labels: [] },
  waits_open: {
    help: 'Waiting steps, by what they wait for; only in the process that leads the waits.',
    labels: ['kind'],
  },
  wait_oldest_seconds: {
    help: 'Age of the oldest wait of a kind, 0 without one; only in the process that leads the waits.',
    labels: ['kind'],
  },
  workers_heard: {
    help: 'Workers that asked for jobs lately; only in the process that leads the waits.',
    labels: [],
  },
  jobs_unserved: {
    help: 'Jobs that none of these workers can get, by tool and labels; only in the process that leads the waits.',
    labels: [],
  },
  webhooks_waiting: {
    help: 'Undelivered messages to webhooks; only in the leading process.',
    labels: [],
  },
  live_clients: { help: 'Clients that follow changes of runs.', labels: [] },
  projection_lag_seconds: {
    help: 'Lag of a projection behind the end of the log; 0 when caught up.',
    labels: ['projection'],
  },
  projection_parked_documents: {
    help: 'Documents that are parked now.',
    labels: ['projection'],
  },
  projection_rebuild_progress: {
    help: 'Progress of a running rebuild, from 0 to 1.',
    labels: ['projection'],
  },
  data_directory_free_bytes: {
    help: 'Free space on the disk of the data directory.',
    labels: [],
  },
  event_log_bytes: { help: 'Size of the embedded log, including its WAL.', labels: [] },
  extension_state: {
    help: '1 for the current state of an extension.',
    labels: ['extension', 'state'],
  },
  extension_active_connections: {
    help: 'Open requests and WebSockets of extensions.',
    labels: ['extension', 'endpoint'],
  },
} as const satisfies Record<string, MetricDefinition>;

export type GaugeName = keyof typeof gauges;
