import type { NewEvent } from '../../../domain/event-store.ts';
import type { DomainEvent } from '../../../domain/events/catalogue.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { silent, type Telemetry } from '../../../observability/telemetry.ts';
import { dueProjection } from '../../../projections/views/due.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import type { Audit } from '../../../scheduler/audit/audit.ts';
import {
  parseReport,
  SCHEDULER_REPORT,
  type AuditReport,
} from '../../../scheduler/audit/report.ts';
import { createSchedulerAudit } from '../../../scheduler/audit/scheduler-audit.ts';
import { PinnedTasks } from '../../../scheduler/pinned-tasks.ts';
import { RunRequester } from '../../../scheduler/fires/run-requester.ts';
import { ShiftedClock } from '../../support/shifted-clock.ts';
import type { SchedulerProcess, World } from '../scheduler-world.ts';

/** Milliseconds that a worker's heartbeat lasts here. */
export const LEASE = 30_000;

/** Collects counters. */
export class CountingTelemetry implements Telemetry {
  readonly log = silent.log;
  readonly failures = silent.failures;
  readonly counts = new Map<string, number>();

  count(name: string, labels: Readonly<Record<string, string>> = {}, by = 1): void {
    const key = [name, ...Object.values(labels)].join(' ');
    this.counts.set(key, (this.counts.get(key) ?? 0) + by);
  }

  observe(): void {}

  /** The audit's findings and repairs of a kind. */
  audited(kind: string): { readonly found: number; readonly mended: number } {
    const of = (what: string): number =>
      this.counts.get(`scheduler_audit_${what}_total ${kind}`) ?? 0;
    return { found: of('findings'), mended: of('mended') };
  }
}

/** Counts pending sleeps. */
export class SleepersClock extends ShiftedClock {
  sleepers = 0;

  override async sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    this.sleepers += 1;
    try {
      await super.sleep(milliseconds, signal);
    } finally {
      this.sleepers -= 1;
    }
  }
}

/** A scheduler with its audit, whose passes a test starts. */
export class AuditedProcess {
  readonly telemetry = new CountingTelemetry();
  readonly audit: Audit;
  readonly process: SchedulerProcess;
  readonly #world: World;
  readonly #clock: SleepersClock;

  constructor(world: World, process: SchedulerProcess, source = 'audit') {
    this.#world = world;
    this.process = process;
    const { store, index, leadership, live } = process;
    const { coordination, readModel } = world;
    const clock = (this.#clock = new SleepersClock(world.clock));
    const { telemetry } = this;
    const tasks = new PinnedTasks(store, live);
    const shared = { store, coordination, clock, leadership, telemetry, tasks };
    const requester = new RunRequester({ ...shared, name: source });
    this.audit = createSchedulerAudit({
      ...shared,
      readModel,
      index,
      requester,
      source,
      lease: LEASE,
    });
  }

  /** One pass with up-to-date views; time advances as needed. */
  async pass(): Promise<AuditReport> {
    await this.#world.project([dueProjection, runsProjection]);
    await passOf(this.audit, this.#world, this.#clock);
    const report = parseReport(await this.#world.coordination.recall(SCHEDULER_REPORT));
    if (report === null) throw new Error('the audit reported nothing');
    return report;
  }
}

/** One pass of an audit. Time advances only while the audit rests. */
export async function passOf(audit: Audit, world: World, clock: SleepersClock): Promise<void> {
  let isOver = false;
  const passing = audit.pass(new AbortController().signal).then(() => (isOver = true));
  while (!isOver) {
    if (clock.sleepers > 0) await world.clock.advance(5);
    else await new Promise<void>((resolve) => setImmediate(resolve));
  }
  await passing;
  await world.idle();
}

/** Appends arbitrary events. */
export async function plant(
  world: World,
  stream: string,
  events: readonly DomainEvent[],
): Promise<void> {
  const planted: readonly NewEvent[] = toNewEvents(stream, events, world.context());
  await world.store.append(stream, planted, 'any');
  await world.idle();
}
