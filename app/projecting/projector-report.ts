import { toIso, type Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import {
  PROJECTION_REPORT,
  type ProjectionReport,
} from '../../projections/projector/projection-report.ts';
import type { ProjectionStatus } from '../../projections/projector/projection-status.ts';
import type { Coordination } from '../../scheduler/coordination.ts';

/** How often the state of the views is told. Milliseconds. */
const EVERY = 1000;
/** The same while a view is being opened, which is over in a moment. */
const WHILE_OPENING = 100;

/**
 * Tells all processes how the views are, again and again until the signal is aborted.
 *
 * @param parts.fence of the projector's lease: an older projector's report is refused
 * @param parts.name under which it is remembered; default: that of the projector that leads
 * @param parts.tell told the same in this process
 * @param parts.every milliseconds between two reports, but while a view is being opened
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
  const { name = PROJECTION_REPORT, every = EVERY } = parts;
  while (!signal.aborted) {
    const views = status();
    parts.tell?.(views);
    const report: ProjectionReport = { at: toIso(clock.now()), fence, views };
    try {
      await coordination.remember(name, JSON.stringify(report), fence);
    } catch (error) {
      // Whoever asks is told what the stores say by themselves.
      telemetry.log.debug('the state of the views could not be told', { error });
    }
    const isOpening = views.some(({ state }) => state === 'opening');
    const rest = isOpening ? Math.min(every, WHILE_OPENING) : every;
    await clock.sleep(rest, signal).catch(() => {});
  }
}
