import type { ArtifactKeeping } from '../../domain/artifacts/keep-result.ts';
import type { Clock } from '../../domain/clock.ts';
import type { SecretAccess } from '../../domain/secrets/secret-access.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Audit } from '../../scheduler/audit/audit.ts';
import { createSchedulerAudit } from '../../scheduler/audit/scheduler-audit.ts';
import { Backfills } from '../../scheduler/backfills/backfills.ts';
import { createScheduler, type SchedulerParts } from '../../scheduler/burst/create-scheduler.ts';
import { DueIndex } from '../../scheduler/fires/due-index.ts';
import { nodeScheduleTimer } from '../../scheduler/fires/node-schedule-timer.ts';
import { RunRequester } from '../../scheduler/fires/run-requester.ts';
import type { Hold } from '../../scheduler/hold.ts';
import type { AllowedPrivate } from '../../scheduler/http/address-rules.ts';
import type { ProxySettings } from '../../scheduler/http/proxies.ts';
import { SilentWorkers } from '../../scheduler/jobs/silent-workers.ts';
import { OwnerEnforcement } from '../../scheduler/owners/owner-enforcement.ts';
import { Leadership } from '../../scheduler/processes/leadership.ts';
import { Retention, type RetentionLimits } from '../../scheduler/retention/retention.ts';
import type { Scheduler } from '../../scheduler/scheduler.ts';
import { WebhookSender } from '../../scheduler/webhooks/webhook-sender.ts';
import { Webhooks } from '../../scheduler/webhooks/webhooks.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { Stores } from '../stores.ts';
import type { Supervisor } from './supervisor.ts';
import type { LiveIndexes } from './live-indexes.ts';

export interface SchedulerRole {
  readonly scheduler: Scheduler;
  readonly leadership: Leadership;
  readonly index: DueIndex;
  readonly audit: Audit;
  /** Undelivered webhook messages, as far as is known here. */
  readonly webhooksWaiting: number;
  stop(): Promise<void>;
}

/** Milliseconds after which another scheduler replaces a dead one. */
const LEASE = 3000;

const DAY = 86_400_000;

/** How long each kind of record is kept, from the settings. */
export function retentionLimits(configuration: Configuration): RetentionLimits {
  const limit = (days: number): number | null => (days === 0 ? null : days * DAY);
  return {
    runs: limit(configuration.retainRunsDays),
    deliveries: limit(configuration.retainDeliveriesDays),
    sessions: limit(configuration.retainSessionsDays),
    refusals: limit(configuration.retainRefusalsDays),
    requests: limit(configuration.retainRequestsDays),
  };
}

export interface SchedulerRoleOptions {
  readonly stores: Stores;
  readonly artifacts: ArtifactKeeping;
  readonly indexes: LiveIndexes;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly supervisor: Supervisor;
  readonly hold: Hold;
  /** Name of this process. */
  readonly member: string;
  /** Milliseconds that a worker's heartbeat lasts. */
  readonly lease: number;
  readonly limits: RetentionLimits;
  readonly secrets: Pick<SecretAccess, 'open'>;
  /** Set if this process has a worker. */
  readonly burst: Pick<SchedulerParts, 'early' | 'onPrepare'>;
  readonly webhooks: {
    /** The secret of an agent, by its version. */
    readonly secretOf: (agentId: string, version: number) => string;
    readonly allowPrivate: AllowedPrivate;
    readonly proxies: ProxySettings;
    readonly userAgent: string;
  };
}

/** Starts the role that turns due tasks into runs. */
export function startSchedulerRole(options: SchedulerRoleOptions): SchedulerRole {
  const { stores, clock, telemetry, supervisor, hold, member, lease, limits } = options;
  const { store, readModel, coordination } = stores;
  const { pinnedTasks: tasks, owners, agents } = options.indexes;
  const shared = { store, readModel, coordination, clock, telemetry, tasks, hold, name: member };
  const leadership = new Leadership({ ...shared, name: 'scheduler', owner: member, lease: LEASE });
  const index = new DueIndex(store, readModel, telemetry);
  const led = { ...shared, leadership, index };
  const requester = new RunRequester(led);
  const timer = nodeScheduleTimer;
  const parts = { ...led, ...options.burst, timer, requests: requester, owners };
  const scheduler = createScheduler(parts);
  hold.onChange(() => scheduler.holdChanged());
  const backfills = new Backfills(led);
  const audit = createSchedulerAudit({ ...led, requester, source: member, lease });
  const { signal } = supervisor;
  supervisor.superviseStarted('leading the scheduler', () => leadership.run(signal));
  supervisor.supervise('following due tasks', (started) =>
    index.follow(signal, () => {
      scheduler.start();
      started();
    }),
  );
  supervisor.superviseStarted('requesting runs', () => requester.follow(signal));
  supervisor.supervise('running backfills', (started) => backfills.follow(signal, started));
  let webhooks: Webhooks | null = null;
  supervisor.superviseStarted('sending webhooks', async () => {
    const { secretOf, ...sending } = options.webhooks;
    const sender = new WebhookSender({ clock, ...sending });
    try {
      webhooks = new Webhooks({ ...led, sender, secretOf, secrets: options.secrets });
      await webhooks.follow(signal);
    } finally {
      await sender.close();
    }
  });
  if (Object.values(limits).some((limit) => limit !== null)) {
    const retention = new Retention({ ...led, limits, artifacts: options.artifacts.store });
    supervisor.superviseStarted('removing old records', () => retention.run(signal));
  }
  const enforcement = new OwnerEnforcement({ ...led, agents });
  supervisor.superviseStarted('enforcing the rights of agents', () => enforcement.run(signal));
  const silentWorkers = new SilentWorkers({ ...led, directory: options.indexes.workers });
  supervisor.superviseStarted('removing silent workers', () => silentWorkers.run(signal));
  supervisor.superviseStarted('auditing the scheduler', () => audit.run(signal));
  return {
    scheduler,
    leadership,
    index,
    audit,
    get webhooksWaiting() {
      return webhooks?.deliveries.size ?? 0;
    },
    stop: () => scheduler.stop(),
  };
}
