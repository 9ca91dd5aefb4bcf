import { fromIso, toIso, type Instant } from '../../domain/clock.ts';
import type { TaskStatus } from '../../domain/vocabulary.ts';
import { LATEST_DAYS } from '../views/statistics-tasks.ts';

/**
 * The health of a task, the worst first. The first one that applies counts.
 *
 * - `failing`: its latest run to end failed
 * - `overdue`: its next run has been due for more than {@link OVERDUE_MS}
 * - `paused`: it is paused, regardless of its runs
 * - `unsteady`: a run failed in the last {@link LATEST_DAYS} days of UTC, but the latest run did not
 * - `new`: no run has ended yet
 * - `ok`
 * - `ended`: it will not fire again
 * - `canceled`
 */
export const taskHealths = [
  'failing',
  'overdue',
  'paused',
  'unsteady',
  'new',
  'ok',
  'ended',
  'canceled',
] as const;
export type TaskHealth = (typeof taskHealths)[number];

/** A task is overdue when it has been due for this long. Milliseconds. */
const OVERDUE_MS = 60_000;

const DAY_MS = 86_400_000;

/** The facts that determine the health of a task. */
export interface HealthSigns {
  readonly status: TaskStatus;
  readonly next_run_at: string | null;
  readonly exhausted: boolean;
  /** The last UTC day on which a run ended; null or empty for none. */
  readonly day: string | null;
  /** When its latest run failed; null if the latest run succeeded. */
  readonly failing: string | null;
  /** The last UTC day on which a run failed; null for none. */
  readonly failed_day: string | null;
}

/** The health of a task at an instant. */
export function healthOf(signs: HealthSigns, now: Instant): TaskHealth {
  const { status, next_run_at, exhausted, day, failing } = signs;
  if (status === 'canceled' || status === 'paused') return status;
  if (failing !== null) return 'failing';
  if (next_run_at !== null && fromIso(next_run_at) < now - OVERDUE_MS) return 'overdue';
  if (hasFailedLately(signs, now)) return 'unsteady';
  if (exhausted) return 'ended';
  return day === null || day === '' ? 'new' : 'ok';
}

/** Whether a run of a task failed in the last {@link LATEST_DAYS} days of UTC, today included. */
export function hasFailedLately(
  { failed_day }: Pick<HealthSigns, 'failed_day'>,
  now: Instant,
): boolean {
  return (failed_day ?? '') >= toIso(now - (LATEST_DAYS - 1) * DAY_MS).slice(0, 10);
}
