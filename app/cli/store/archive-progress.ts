import { RefusalError } from '../../../domain/errors.ts';
import { EventStoreError } from '../../../domain/event-store.ts';
import { ArchiveError } from '../../archive/archive-error.ts';
import type { ArchiveProgress } from '../../archive/progress.ts';
import {
  CommandError,
  exitCodes,
  InterruptedError,
  type ExitCode,
} from '../calling/command-errors.ts';
import type { Session } from '../calling/session.ts';
import { CLEAR_LINE, progressBar } from '../terminal/charts.ts';
import { duration } from '../terminal/units.ts';

/** Milliseconds between two redraws of the bar. */
const REDRAW_INTERVAL = 100;

/** `[████████░░░░] 46 %  48,000 events  31,250/s  2 s left` */
export function progressText(share: number, events: number | undefined, seconds: number): string {
  const parts = [progressBar(share)];
  if (events !== undefined) {
    const rate = seconds > 0 ? Math.round(events / seconds) : 0;
    parts.push(`${events.toLocaleString('en')} events`, `${rate.toLocaleString('en')}/s`);
  }
  if (share > 0 && share < 1 && seconds >= 1) {
    parts.push(`${duration(Math.ceil((seconds / share) * (1 - share)))} left`);
  }
  return parts.join('  ');
}

/** Prints progress to standard error: a line for each stage and, on a terminal, a bar under it. */
class ProgressScreen implements ArchiveProgress {
  readonly signal: AbortSignal;
  readonly #session: Session;
  #stageStart = 0;
  #drawnAt = 0;
  #isDrawn = false;

  constructor(session: Session) {
    this.#session = session;
    this.signal = session.environment.signal;
  }

  stage(name: string): void {
    this.end();
    this.#session.aside(this.#session.paint.faint(name));
    this.#stageStart = performance.now();
    this.#drawnAt = 0;
  }

  move(share: number, events?: number): void {
    const { err } = this.#session.environment;
    const now = performance.now();
    if (!err.isTerminal || (share < 1 && now - this.#drawnAt < REDRAW_INTERVAL)) return;
    this.#drawnAt = now;
    this.#isDrawn = true;
    err.write(CLEAR_LINE + progressText(share, events, (now - this.#stageStart) / 1000));
  }

  /** Leaves the line of the bar. */
  end(): void {
    if (this.#isDrawn) this.#session.environment.err.write('\n');
    this.#isDrawn = false;
  }
}

/**
 * Works on stores or archives and shows the progress.
 * @throws CommandError with an exit code for a rejection by the archive or store
 */
export async function withProgress<T>(
  session: Session,
  work: (progress: ArchiveProgress) => Promise<T>,
): Promise<T> {
  const screen = new ProgressScreen(session);
  try {
    return await work(screen);
  } catch (error) {
    if (screen.signal.aborted) throw new InterruptedError(error);
    throw await translate(error);
  } finally {
    screen.end();
  }
}

const archiveExitCodes: Readonly<Record<ArchiveError['kind'], ExitCode>> = {
  absent: exitCodes.usage,
  invalid: exitCodes.usage,
  refused: exitCodes.conflict,
  damaged: exitCodes.failure,
  failed: exitCodes.failure,
};

async function translate(error: unknown): Promise<unknown> {
  if (!(error instanceof Error)) return error;
  const as = (code: ExitCode, message = error.message): CommandError =>
    new CommandError(code, message, error);
  if (error instanceof ArchiveError) return as(archiveExitCodes[error.kind]);
  if (error instanceof RefusalError) return as(exitCodes.conflict);
  if (error instanceof EventStoreError) {
    const isUnavailable = error.code === 'UNAVAILABLE' || error.code === 'OUTCOME_UNKNOWN';
    return as(isUnavailable ? exitCodes.unavailable : exitCodes.failure);
  }
  // Imported here because most commands call the service and need no store.
  const { ReadModelError } = await import('../../../projections/read-model.ts');
  if (error instanceof ReadModelError && error.code === 'UNAVAILABLE') {
    return as(exitCodes.unavailable);
  }
  if ('code' in error && error.code === 'ENOSPC') {
    // `path` is the source of a copy, `dest` its target.
    const { path, dest = path } = error as NodeJS.ErrnoException & { readonly dest?: string };
    const where = dest === undefined ? '' : ` for ${dest}`;
    return as(exitCodes.failure, `the disk is full${where}: ${error.message}`);
  }
  return error;
}
