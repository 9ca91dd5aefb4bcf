import { CommandError, exitCodes } from '../calling/command-errors.ts';
import type { Session } from '../calling/session.ts';
import { progressBar, ProgressLine } from '../terminal/charts.ts';
import { printable } from '../terminal/paint.ts';
import { duration } from '../terminal/units.ts';

/** A view in the service's response, as far as the command line reads it. */
export interface ShownProjection {
  readonly name: string;
  readonly version: number;
  readonly schema: number;
  readonly state: string;
  readonly position: string;
  readonly lag_seconds: number;
  readonly caught_up: boolean;
  readonly handled: number;
  readonly parked: number;
  readonly rebuild: ShownRebuild | null;
  readonly previous: { readonly version: number; readonly until: string } | null;
  readonly detail: string | null;
}

export interface ShownRebuild {
  readonly version: number;
  readonly state: string;
  readonly handled: number;
  readonly progress: number;
  readonly events_per_second: number;
  readonly seconds_left: number | null;
  /** Applications of events that an operator skipped. */
  readonly left_out: number;
  readonly detail: string | null;
  readonly switch: string;
  readonly comparison: {
    readonly documents_before: number;
    readonly documents_after: number;
    readonly compared: number;
    readonly different: number;
    readonly complete: boolean;
    readonly first: readonly {
      readonly key: string;
      readonly difference: string;
      readonly fields: readonly string[];
    }[];
  } | null;
}

/** Milliseconds between two polls. */
const POLL_INTERVAL = 500;

/** Reads all views. */
export async function readProjections({ client }: Session): Promise<readonly ShownProjection[]> {
  type ListResponse = { readonly projections: readonly ShownProjection[] };
  return (await client.get<ListResponse>('/projections')).projections;
}

/** Reads one view. @throws CommandError if there is none with this name */
export async function readProjection(session: Session, name: string): Promise<ShownProjection> {
  const projections = await readProjections(session);
  const found = projections.find((each) => each.name === name);
  if (found !== undefined) return found;
  const names = projections.map((each) => each.name).join(', ');
  const message = `there is no projection ${name}; there are ${names}`;
  throw new CommandError(exitCodes.notFound, message);
}

/**
 * Shows the progress of a rebuild until reads use it, it waits for the switch, it is paused, or it fails. Returns the
 * view.
 * @throws CommandError if the rebuild fails
 */
export async function followRebuild(
  session: Session,
  name: string,
  version: number,
): Promise<ShownProjection> {
  const { err, signal } = session.environment;
  const line = new ProgressLine(err);
  for (let isFirst = true; ; isFirst = false) {
    const shown = await readProjection(session, name);
    const rebuild = shown.rebuild?.version === version ? shown.rebuild : null;
    // Directly after the request, no projector can have started.
    if (!isFirst || rebuild?.state !== 'waiting') {
      // A rebuild that finished between two polls still shows its size.
      const isUnseen = line.isEmpty && shown.version === version;
      const whole = isUnseen ? `${barAndEvents(1, shown.handled)}\n` : '';
      const end = `${whole}version ${shown.version} is live`;
      line.show(rebuild === null ? end : progressOf(rebuild), rebuild?.progress ?? 1.1);
    }
    const isReady = rebuild?.state === 'ready' && rebuild.switch === 'manual';
    if (rebuild === null || isReady || ['failed', 'paused'].includes(rebuild.state)) {
      line.end();
      if (rebuild?.state !== 'failed') return shown;
      throw new CommandError(exitCodes.failure, `the rebuild failed: ${rebuild.detail ?? ''}`);
    }
    await session.clock.sleep(POLL_INTERVAL, signal);
  }
}

const barAndEvents = (progress: number, handled: number): string =>
  `${progressBar(progress)}  ${handled.toLocaleString('en')} events`;

/** `[████████░░░░] 46 %  48,000 events  31,250/s  2 s left` */
export function progressOf(rebuild: ShownRebuild): string {
  const { progress, handled, events_per_second: rate, seconds_left: left, state } = rebuild;
  const isWaiting = handled === 0 && state === 'waiting';
  const parts = [isWaiting ? progressBar(progress) : barAndEvents(progress, handled)];
  if (rebuild.left_out > 0) parts.push(`${rebuild.left_out.toLocaleString('en')} left out`);
  parts.push(state === 'filling' ? `${rate.toLocaleString('en')}/s` : state.replace('_', ' '));
  if (state === 'filling' && left !== null) parts.push(`${duration(left)} left`);
  return parts.join('  ');
}

/** `2 filling, 46 %, 2 s left`, for a table */
export function shortProgressOf(rebuild: ShownRebuild): string {
  const { version, state, progress, seconds_left: left } = rebuild;
  const parts = [`${version} ${state.replace('_', ' ')}`];
  if (state === 'filling') {
    parts.push(`${Math.floor(progress * 100)} %`);
    if (left !== null) parts.push(`${duration(left)} left`);
  }
  return parts.join(', ');
}

/** How the new version differs from the live one, in lines. */
export function differenceOf(
  { paint }: Session,
  comparison: NonNullable<ShownRebuild['comparison']>,
): string {
  const { documents_before, documents_after, compared, different, complete, first } = comparison;
  const [after, before, keys, others] = [
    documents_after,
    documents_before,
    compared,
    different,
  ].map((count) => count.toLocaleString('en'));
  const scope = complete ? 'all keys' : `the first ${keys} keys`;
  const head = `${after} documents, ${before} before; ${others} differ of ${scope}`;
  const lines = first.map(({ key, difference, fields }) => {
    const what = fields.length === 0 ? '' : `: ${fields.join(', ')}`;
    return `  ${printable(key)} ${difference.replace('_', ' ')}${printable(what)}`;
  });
  return [different === 0 ? paint.good(head) : paint.warning(head), ...lines].join('\n');
}
