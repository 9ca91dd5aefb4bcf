import { stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../domain/clock.ts';
import type { ExtensionHost } from '../../extensions/host/host.ts';
import { healthStatuses, type HealthCheck } from '../../observability/health.ts';
import type { Metrics, Reading } from '../../observability/metrics.ts';
import type { HealthReports } from '../../api/dependencies.ts';
import type { ProjectionStatus } from '../../projections/projector/projection-status.ts';
import type { RegisteredWorker } from '../../domain/workers/worker.ts';
import type { JobLeases } from '../../scheduler/coordination.ts';
import type { Membership } from '../../scheduler/processes/membership.ts';
import type { Hold } from '../../scheduler/hold.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { beginKnownSeries } from './known-series.ts';
import type { SchedulerRole } from '../roles/scheduler-role.ts';
import type { WorkerRole } from '../roles/worker-role.ts';
import { OpenWaits, type WaitCounts } from './open-waits.ts';

/** The sources of the gauges. Each may come later, or never in this process. */
export interface Gauged {
  readonly configuration: Pick<
    Configuration,
    | 'roles'
    | 'dataDirectory'
    | 'eventStoreUrl'
    | 'readModelUrl'
    | 'workerConcurrency'
    | 'jobLeaseSeconds'
  >;
  readonly version: string;
  readonly clock: Clock;
  readonly membership: Membership;
  readonly hold: Hold;
  /** A separate instance, because it measures how the views move between its checks. */
  readonly health: HealthReports;
  readonly scheduler: () => SchedulerRole | null;
  readonly worker: () => WorkerRole | null;
  readonly leases: Pick<JobLeases, 'seen'>;
  readonly registered: () => Iterable<RegisteredWorker>;
  readonly host: () => ExtensionHost | null;
  /** null while this process does not project. */
  readonly views: () => readonly ProjectionStatus[] | null;
  readonly liveClients: () => number;
}

/** Registers how each gauge of the catalogue is read. */
export function addGauges(metrics: Metrics, parts: Gauged): void {
  const found = parts.host()?.states() ?? [];
  beginKnownSeries(metrics, [...new Set(found.map(({ labels }) => labels['extension'] ?? ''))]);
  aboutProcess(metrics, parts);
  aboutScheduling(metrics, parts);
  aboutRuns(metrics, parts);
  aboutWaits(metrics, parts);
  aboutViews(metrics, parts);
  aboutDisk(metrics, parts);
  aboutExtensions(metrics, parts);
}

function aboutProcess(metrics: Metrics, parts: Gauged): void {
  const { configuration, version, health, membership } = parts;
  const roles = configuration.roles.join(',');
  metrics.gauge('service_info', () => [{ labels: { version, roles }, value: 1 }]);
  metrics.gauge('service_ready', async () => [
    { value: (await health.ready()).status === 200 ? 1 : 0 },
  ]);
  metrics.gauge('health_status', async () => {
    const { body } = await health.report();
    const { checks } = body as { readonly checks: readonly HealthCheck[] };
    return checks.map(({ name, status }) => ({
      labels: { check: name },
      value: healthStatuses.indexOf(status),
    }));
  });
  metrics.gauge('members_alive', () =>
    allRoles.map((role) => ({ labels: { role }, value: membership.withRole(role).length })),
  );
  metrics.gauge('lease_held', () => {
    const { scheduler, worker, host, views } = parts;
    const held: Reading[] = [...(host()?.leases() ?? [])];
    const leading = scheduler()?.leadership.leads;
    if (leading !== undefined) held.push(leaseHeld('scheduler', leading));
    const waits = worker()?.waits.leads;
    if (waits !== undefined) held.push(leaseHeld('waits', waits));
    if (configuration.roles.includes('projector')) {
      held.push(leaseHeld('projector', views() !== null));
    }
    return held;
  });
}

const allRoles = ['api', 'projector', 'scheduler', 'worker'] as const;

const leaseHeld = (lease: string, held: boolean): Reading => ({
  labels: { lease },
  value: held ? 1 : 0,
});

function aboutScheduling(metrics: Metrics, { scheduler, hold, clock }: Gauged): void {
  metrics.gauge('scheduler_tasks', () => sole(scheduler()?.index.size));
  metrics.gauge('scheduler_overdue_seconds', () => {
    const role = scheduler();
    if (role === null || !role.leadership.leads) return [];
    const due = role.index.earliest();
    return [{ value: due === null ? 0 : Math.max(0, clock.now() - due) / 1000 }];
  });
  metrics.gauge('scheduler_held', () => [{ value: hold.held ? 1 : 0 }]);
  metrics.gauge('scheduler_audit_last_success_timestamp', () => {
    const at = scheduler()?.audit.lastSuccess ?? null;
    return at === null ? [] : [{ value: at / 1000 }];
  });
  metrics.gauge('webhooks_waiting', () => {
    const role = scheduler();
    return role?.leadership.leads === true ? [{ value: role.webhooksWaiting }] : [];
  });
}

function aboutRuns(metrics: Metrics, { worker, configuration, clock, liveClients }: Gauged): void {
  metrics.gauge('runs_under_way', () => [{ value: worker()?.worker.active ?? 0 }]);
  metrics.gauge('run_slots', () => [{ value: worker() ? configuration.workerConcurrency : 0 }]);
  metrics.gauge('run_slots_full_seconds', () => {
    const role = worker();
    if (role === null) return [];
    const since = role.worker.fullSince;
    return [{ value: since === null ? 0 : Math.max(0, clock.now() - since) / 1000 }];
  });
  metrics.gauge('runs_waiting', () => [{ value: worker()?.queue.waiting ?? 0 }]);
  metrics.gauge('live_clients', () => [{ value: liveClients() }]);
}

function aboutWaits(metrics: Metrics, parts: Gauged): void {
  const { configuration, worker, leases, registered: workers, clock } = parts;
  const waits = new OpenWaits({
    runs: () => (worker()?.waits.leads === true ? (worker()?.queue.all() ?? null) : null),
    workers,
    leases,
    clock,
    leaseSeconds: configuration.jobLeaseSeconds,
  });
  const read = (readings: (counts: WaitCounts) => readonly Reading[]) => async () => {
    const counts = await waits.read();
    return counts === null ? [] : [...readings(counts)];
  };
  const each = (values: WaitCounts['open']): readonly Reading[] =>
    Object.entries(values).map(([kind, value]) => ({ labels: { kind }, value }));
  metrics.gauge(
    'waits_open',
    read(({ open }) => each(open)),
  );
  metrics.gauge(
    'wait_oldest_seconds',
    read(({ oldest }) => each(oldest)),
  );
  metrics.gauge(
    'workers_heard',
    read(({ workers }) => [{ value: workers }]),
  );
  metrics.gauge(
    'jobs_unserved',
    read(({ unserved }) => [{ value: unserved }]),
  );
}

function aboutViews(metrics: Metrics, { views }: Gauged): void {
  const each = (read: (view: ProjectionStatus) => number | null) => () =>
    (views() ?? []).flatMap((view) => {
      const value = read(view);
      return value === null ? [] : [{ labels: { projection: view.name }, value }];
    });
  const lag = each((view) => view.lag_seconds);
  metrics.gauge('projection_lag_seconds', lag);
  const parked = each((view) => view.parked);
  metrics.gauge('projection_parked_documents', parked);
  const progress = each((view) => view.rebuild?.progress ?? null);
  metrics.gauge('projection_rebuild_progress', progress);
}

function aboutDisk(metrics: Metrics, { configuration }: Gauged): void {
  const { dataDirectory, eventStoreUrl, readModelUrl } = configuration;
  const embeddedLog = eventStoreUrl === undefined;
  const used = embeddedLog || readModelUrl === undefined;
  metrics.gauge('data_directory_free_bytes', async () => {
    if (!used) return [];
    const { bavail, bsize } = await statfs(dataDirectory);
    return [{ value: bavail * bsize }];
  });
  metrics.gauge('event_log_bytes', async () => {
    if (!embeddedLog) return [];
    const sizes = await Promise.all(
      ['events.sqlite', 'events.sqlite-wal'].map((name) => sizeOf(join(dataDirectory, name))),
    );
    return [{ value: sizes.reduce((sum, size) => sum + size, 0) }];
  });
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}

function aboutExtensions(metrics: Metrics, { host }: Gauged): void {
  metrics.gauge('extension_state', () => host()?.states() ?? []);
  metrics.gauge('extension_active_connections', () => host()?.activeConnections() ?? []);
}

const sole = (value: number | undefined): Reading[] => (value === undefined ? [] : [{ value }]);
