import type { Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { Backfills } from '../../scheduler/backfills/backfills.ts';
import type { Audit } from '../../scheduler/audit/audit.ts';
import { createSchedulerAudit } from '../../scheduler/audit/scheduler-audit.ts';
import type { AllowedPrivate } from '../../scheduler/http/address-rules.ts';
import type { ProxySettings } from '../../scheduler/http/proxies.ts';
import type { Hold } from '../../scheduler/hold.ts';
import { DueIndex } from '../../scheduler/fires/due-index.ts';
import { Leadership } from '../../scheduler/processes/leadership.ts';
import { nodeScheduleTimer } from '../../scheduler/fires/node-schedule-timer.ts';
import { Retention, type RetentionLimits } from '../../scheduler/retention/retention.ts';
import { RunRequester } from '../../scheduler/fires/run-requester.ts';
import { Scheduler } from '../../scheduler/scheduler.ts';
import { WebhookSender } from '../../scheduler/webhooks/webhook-sender.ts';
import { Webhooks } from '../../scheduler/webhooks/webhooks.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { Going } from './going.ts';
import type { LiveIndexes } from './live-indexes.ts';
import type { Stores } from '../stores.ts';

export interface SchedulerRole {
  readonly scheduler: Scheduler;
  readonly leadership: Leadership;
  readonly index: DueIndex;
  readonly audit: Audit;
  /** Messages to webhooks that are still to be delivered, as far as is known here. */
  readonly webhooksWaiting: number;
  stop(): Promise<void>;
}

/** Milliseconds after which a scheduler that is gone is followed by another. */
const LEASE = 3000;

/** How long each kind of records is kept, as the settings say. */
export function retentionLimits(configuration: Configuration): RetentionLimits {
  const { retainRunsDays, retainDeliveriesDays, retainSessionsDays } = configuration;
  const { retainRefusalsDays, retainRequestsDays } = configuration;
  const limit = (days: number): number | null => (days === 0 ? null : days * DAY);
  return {
    runs: limit(retainRunsDays),
    deliveries: limit(retainDeliveriesDays),
    sessions: limit(retainSessionsDays),
    refusals: limit(retainRefusalsDays),
    requests: limit(retainRequestsDays),
  };
}

const DAY = 86_400_000;

/** Starts the part that turns what is due into runs. */
export function startSchedulerRole(options: {
  readonly stores: Stores;
  readonly indexes: LiveIndexes;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly going: Going;
  readonly hold: Hold;
  /** This process among the others. */
  readonly member: string;
  /** Milliseconds that a worker's heartbeat lasts. */
  readonly lease: number;
  readonly limits: RetentionLimits;
  readonly webhooks: {
    /** Of an agent, by its version. */
    readonly secretOf: (agentId: string, version: number) => string;
    readonly allowPrivate: AllowedPrivate;
    readonly proxies: ProxySettings;
    readonly userAgent: string;
  };
}): SchedulerRole {
  const { stores, indexes, clock, telemetry, going, hold, member, lease } = options;
  const { store, readModel, coordination } = stores;
  const shared = { store, coordination, clock, telemetry };
  const leadership = new Leadership({ ...shared, name: 'scheduler', owner: member, lease: LEASE });
  const index = new DueIndex(store, readModel, telemetry);
  const scheduler = new Scheduler({
    ...shared,
    index,
    leadership,
    timer: nodeScheduleTimer,
    name: member,
    hold,
  });
  hold.onChange(() => scheduler.holdChanged());
  const requester = new RunRequester({
    ...shared,
    leadership,
    tasks: indexes.pinnedTasks,
    name: member,
  });
  const backfills = new Backfills({
    ...shared,
    readModel,
    leadership,
    tasks: indexes.pinnedTasks,
    name: member,
  });
  const audit = createSchedulerAudit({
    ...shared,
    readModel,
    index,
    leadership,
    requester,
    tasks: indexes.pinnedTasks,
    source: member,
    lease,
    hold,
  });
  scheduler.writer.onRequesting = (runs) => requester.leaveToScheduler(runs);
  scheduler.writer.onRequested = (runId) => requester.noteRequested(runId);
  scheduler.onSoon = (taskId, revision) => indexes.pinnedTasks.prepare(taskId, revision);
  const { signal } = going;
  going.keep('leading the scheduler', async (started) => {
    started();
    await leadership.run(signal);
  });
  going.keep('following what is due', (started) =>
    index.follow(signal, () => {
      scheduler.start();
      started();
    }),
  );
  going.keep('requesting runs', async (started) => {
    started();
    await requester.follow(signal);
  });
  going.keep('leading backfills', (started) => backfills.follow(signal, started));
  let webhooks: Webhooks | null = null;
  going.keep('telling webhooks', async (started) => {
    const { secretOf, ...sending } = options.webhooks;
    const sender = new WebhookSender({ clock, ...sending });
    const tasks = indexes.pinnedTasks;
    const means = { ...shared, readModel, leadership, tasks, sender, secretOf, name: member };
    started();
    try {
      webhooks = new Webhooks(means);
      await webhooks.follow(signal);
    } finally {
      await sender.close();
    }
  });
  const retention = new Retention({ ...shared, leadership, name: member, limits: options.limits });
  if (Object.values(options.limits).some((limit) => limit !== null)) {
    going.keep('removing old records', async (started) => {
      started();
      await retention.run(signal);
    });
  }
  going.keep('auditing the scheduler', async (started) => {
    started();
    await audit.run(signal);
  });
  return {
    ...{ scheduler, leadership, index, audit },
    get webhooksWaiting() {
      return webhooks?.deliveries.size ?? 0;
    },
    stop: () => scheduler.stop(),
  };
}
