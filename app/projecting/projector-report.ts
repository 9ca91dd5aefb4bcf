import { toIso, type Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import {
  PROJECTION_REPORT,
  type ProjectionReport,
} from '../../projections/projector/projection-report.ts';
import type { ProjectionStatus } from '../../projections/projector/projection-status.ts';
import type { Coordination } from '../../scheduler/coordination.ts';

/** The message that reports a failure. */
const FAILURE = 'could not report the status of the views; retrying';

const INTERVAL_MS = 1000;
/** While a view is being opened, which is short. */
const INTERVAL_WHILE_OPENING_MS = 100;

/**
 * Reports the status of the views to all processes until the signal is aborted.
 *
 * @param parts.fence of the projector's lease: an older projector's report is refused
 * @param parts.name the name of the report; default: that of the leading projector
 * @param parts.tell receives the same in this process
 * @param parts.every milliseconds between two reports, except while a view is being opened
 */
export async function reportProjections(parts: {
  readonly status: () => readonly ProjectionStatus[];
  readonly coordination: Coordination;
  readonly fence: number;
  readonly name?: string;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly signal: AbortSignal;
  readonly tell?: (views: readonly ProjectionStatus[]) => void;
  readonly every?: number;
}): Promise<void> {
  const { status, coordination, fence, clock, telemetry, signal } = parts;
  const { name = PROJECTION_REPORT, every = INTERVAL_MS } = parts;
  while (!signal.aborted) {
    const views = status();
    parts.tell?.(views);
    const report: ProjectionReport = { at: toIso(clock.now()), fence, views };
    try {
      await coordination.remember(name, JSON.stringify(report), fence);
      telemetry.failures.worked(FAILURE);
    } catch (error) {
      // Readers fall back on the stores.
      telemetry.failures.failed(FAILURE, error);
    }
    const isOpening = views.some(({ state }) => state === 'opening');
    const rest = isOpening ? Math.min(every, INTERVAL_WHILE_OPENING_MS) : every;
    await clock.sleep(rest, signal).catch(() => {});
  }
}
