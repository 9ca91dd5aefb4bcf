import type { ArchiveProgress } from '../../archive/progress.ts';
import { ArchiveFault } from '../../archive/archive-fault.ts';
import { EventStoreError } from '../../../domain/event-store.ts';
import { Refusal } from '../../../domain/errors.ts';
import { BrokenOff, CommandFault, exitCodes, type ExitCode } from '../calling/faults.ts';
import type { Session } from '../calling/session.ts';
import { duration } from '../terminal/times.ts';

/** Characters of the bar. */
const BAR = 24;
/** Milliseconds between two drawings of the bar. */
const PAUSE = 100;
const CLEAR = '\r\u001b[2K';

/** `[████████░░░░] 46 %  48,000 events  31,250/s  2 s left` */
export function progressBar(share: number, events: number | undefined, seconds: number): string {
  const full = Math.round(Math.min(1, share) * BAR);
  const parts = [
    `[${'█'.repeat(full)}${'░'.repeat(BAR - full)}] ${String(Math.floor(share * 100)).padStart(3)} %`,
  ];
  if (events !== undefined) {
    const rate = seconds > 0 ? Math.round(events / seconds) : 0;
    parts.push(`${events.toLocaleString('en')} events`, `${rate.toLocaleString('en')}/s`);
  }
  if (share > 0 && share < 1 && seconds >= 1) {
    parts.push(`${duration(Math.ceil((seconds / share) * (1 - share)))} left`);
  }
  return parts.join('  ');
}

/**
 * Shows how far something is, beside the answer: a line for each stage, and under it on a terminal a bar that moves.
 */
export class ArchiveScreen implements ArchiveProgress {
  readonly signal: AbortSignal;
  readonly #session: Session;
  #began = 0;
  #drawn = 0;
  #isDrawn = false;

  constructor(session: Session) {
    this.#session = session;
    this.signal = session.surroundings.signal;
  }

  stage(name: string): void {
    this.end();
    this.#session.aside(this.#session.paint.faint(name));
    this.#began = performance.now();
    this.#drawn = 0;
  }

  move(share: number, events?: number): void {
    const { err } = this.#session.surroundings;
    const now = performance.now();
    if (!err.isTerminal || (share < 1 && now - this.#drawn < PAUSE)) return;
    this.#drawn = now;
    this.#isDrawn = true;
    err.write(CLEAR + progressBar(share, events, (now - this.#began) / 1000));
  }

  /** Leaves the line of the bar. */
  end(): void {
    if (this.#isDrawn) this.#session.surroundings.err.write('\n');
    this.#isDrawn = false;
  }
}

/**
 * Does something with an archive and shows how far it is.
 * @throws CommandFault for what the archive or the store refuses, with the exit code that says so
 */
export async function withScreen<T>(
  session: Session,
  work: (progress: ArchiveProgress) => Promise<T>,
): Promise<T> {
  const screen = new ArchiveScreen(session);
  try {
    return await work(screen);
  } catch (error) {
    if (screen.signal.aborted) throw new BrokenOff(error);
    throw await faultOf(error);
  } finally {
    screen.end();
  }
}

/** A folder without a store is a mistyped one, as with every command on the stores. */
const codeOf: Readonly<Record<ArchiveFault['kind'], ExitCode>> = {
  absent: exitCodes.usage,
  refused: exitCodes.conflict,
  damaged: exitCodes.failure,
  failed: exitCodes.failure,
};

async function faultOf(error: unknown): Promise<unknown> {
  if (error instanceof ArchiveFault) {
    return new CommandFault(codeOf[error.kind], error.message, error);
  }
  if (error instanceof Refusal) return new CommandFault(exitCodes.conflict, error.message, error);
  if (error instanceof EventStoreError) {
    const isAway = error.code === 'UNAVAILABLE' || error.code === 'OUTCOME_UNKNOWN';
    const code = isAway ? exitCodes.unavailable : exitCodes.failure;
    return new CommandFault(code, error.message, error);
  }
  // Only here: most commands call the service, and need none of the stores.
  const { ReadModelError } = await import('../../../projections/read-model.ts');
  if (error instanceof ReadModelError && error.code === 'UNAVAILABLE') {
    return new CommandFault(exitCodes.unavailable, error.message, error);
  }
  if (error instanceof Error && 'code' in error && error.code === 'ENOSPC') {
    // Of a copy, `path` is what it is made of.
    const { path, dest = path } = error as NodeJS.ErrnoException & { readonly dest?: string };
    const where = dest === undefined ? '' : ` for ${dest}`;
    return new CommandFault(exitCodes.failure, `the disk is full${where}: ${error.message}`, error);
  }
  return error;
}
