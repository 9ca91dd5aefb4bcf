import type { RunQueue } from '../runs/run-queue.ts';
import { Audit, type AuditParts } from './audit.ts';
import { FiresHaveRuns } from './fires-have-runs.ts';
import { IndexAgrees } from './index-agrees.ts';
import { KeysHaveRuns } from './keys-have-runs.ts';
import { NextFiresAgree } from './next-fires-agree.ts';
import { QueueAgrees } from './queue-agrees.ts';
import { QUEUE_REPORT, SCHEDULER_REPORT } from './report.ts';
import { RunsHaveWorkers } from './runs-have-workers.ts';
import { TasksAreDecided } from './tasks-are-decided.ts';

/** The order matters, because the later checks rely on the index. */
const schedulerChecks = [
  IndexAgrees,
  TasksAreDecided,
  NextFiresAgree,
  FiresHaveRuns,
  KeysHaveRuns,
  RunsHaveWorkers,
] as const;

/** The scheduler's audit of itself. Only the leader runs it, once its index is complete. */
export function createSchedulerAudit(parts: AuditParts): Audit {
  const { coordination, index, leadership, clock, telemetry } = parts;
  return new Audit({
    checks: schedulerChecks.map((Check) => new Check(parts)),
    clock,
    telemetry,
    isWanted: () => leadership.leads && index.isCurrent,
    publish: async (report) => {
      await coordination.remember(SCHEDULER_REPORT, JSON.stringify(report), leadership.fence);
    },
  });
}

/** A worker's audit of its own queue, once the queue is complete. */
export function createQueueAudit(
  parts: Pick<AuditParts, 'store' | 'readModel' | 'coordination' | 'clock' | 'telemetry'> & {
    readonly queue: RunQueue;
  },
): Audit {
  const { coordination, queue, clock, telemetry } = parts;
  return new Audit({
    checks: [new QueueAgrees(parts)],
    clock,
    telemetry,
    isWanted: () => queue.isCurrent,
    publish: async (report) => {
      // Only the last worker that found something is shown.
      if (Object.keys(report.findings).length === 0 && report.faults.length === 0) return;
      await coordination.remember(QUEUE_REPORT, JSON.stringify(report), 0);
    },
  });
}
