import type { Clock } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import type { Coordination } from '../coordination.ts';
import type { DueIndex } from '../fires/due-index.ts';
import type { HoldView } from '../hold.ts';
import type { Leadership } from '../processes/leadership.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import type { RunQueue } from '../runs/run-queue.ts';
import type { RunRequester } from '../fires/run-requester.ts';
import { Audit } from './audit.ts';
import { FiresHaveRuns } from './fires-have-runs.ts';
import { IndexAgrees } from './index-agrees.ts';
import { KeysHaveRuns } from './keys-have-runs.ts';
import { NextFiresAgree } from './next-fires-agree.ts';
import { QueueAgrees } from './queue-agrees.ts';
import { QUEUE_REPORT, SCHEDULER_REPORT } from './report.ts';
import { RunsHaveWorkers } from './runs-have-workers.ts';
import { TasksAreDecided } from './tasks-are-decided.ts';

/**
 * The scheduler's audit of itself. Only who leads does it, and only once its index holds all: the index first, as what
 * comes after goes by it.
 */
export function createSchedulerAudit(parts: {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly coordination: Coordination;
  readonly index: DueIndex;
  readonly leadership: Leadership;
  readonly requester: RunRequester;
  readonly tasks: PinnedTasks;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** This process, as the source of what is mended. */
  readonly source: string;
  /** Milliseconds that a worker's heartbeat lasts. */
  readonly lease: number;
  readonly hold?: HoldView;
}): Audit {
  const { coordination, index, leadership, requester, clock, telemetry } = parts;
  const isRequested = (runId: string): boolean => requester.isRequestedHere(runId);
  const checks = [
    new IndexAgrees(parts),
    new TasksAreDecided(parts),
    new NextFiresAgree(parts),
    new FiresHaveRuns({
      ...parts,
      isUnderWay: (runId) => requester.isUnderWay(runId),
      isRequested,
      makeUp: (event) => requester.makeUp(event),
    }),
    new KeysHaveRuns(parts),
    new RunsHaveWorkers(parts),
  ];
  return new Audit({
    checks,
    clock,
    telemetry,
    isWanted: () => leadership.leads && index.isCurrent,
    publish: async (report) => {
      await coordination.remember(SCHEDULER_REPORT, JSON.stringify(report), leadership.fence);
    },
  });
}

/** A worker's audit of its queue: each worker looks at its own, once it holds all. */
export function createQueueAudit(parts: {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly coordination: Coordination;
  readonly queue: RunQueue;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}): Audit {
  const { coordination, queue, clock, telemetry } = parts;
  return new Audit({
    checks: [new QueueAgrees(parts)],
    clock,
    telemetry,
    isWanted: () => queue.isCurrent,
    publish: async (report) => {
      // Of many workers, the last that found something is told of.
      if (Object.keys(report.findings).length === 0 && report.faults.length === 0) return;
      await coordination.remember(QUEUE_REPORT, JSON.stringify(report), 0);
    },
  });
}
