import { CommandFault, exitCodes } from '../calling/faults.ts';
import { printable } from '../terminal/paint.ts';
import type { Session } from '../calling/session.ts';
import { duration } from '../terminal/times.ts';

/** A view as the service answers, as far as the command line looks at it. */
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
  /** How often an event was left out that was skipped before. */
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

/** Milliseconds between two looks. */
const PAUSE = 500;

/** Characters of the bar. */
const BAR = 24;

/** The views; one of them where a name is given. @throws CommandFault where there is none of the name */
export async function readProjections(
  session: Session,
  name?: string,
): Promise<readonly ShownProjection[]> {
  type Answer = { readonly projections: readonly ShownProjection[] };
  const { projections } = await session.client.get<Answer>('/projections');
  if (name === undefined) return projections;
  const found = projections.filter((each) => each.name === name);
  if (found.length > 0) return found;
  const names = projections.map((each) => each.name).join(', ');
  throw new CommandFault(exitCodes.notFound, `there is no projection ${name}; there are ${names}`);
}

/**
 * Shows how far a rebuild is until reads go to it, it waits for that, rests, or fails: on a terminal as a bar that
 * moves, and else as a line for each tenth. Of one that was done between two looks, how much it was.
 * @returns the view as it then is
 */
export async function followRebuild(
  session: Session,
  name: string,
  version: number,
): Promise<ShownProjection> {
  const { err, signal } = session.surroundings;
  let tenth = -1;
  for (let look = 0; ; look += 1) {
    const [shown] = await readProjections(session, name);
    if (shown === undefined) throw new CommandFault(exitCodes.notFound, `${name} is gone`);
    const { rebuild } = shown;
    const isUnderWay = rebuild?.version === version;
    // At the first look it has just been ordered: that nobody has begun yet says nothing.
    const isOrdered = isUnderWay && rebuild.state === 'waiting' && look === 0;
    if (!isOrdered) {
      const now = isUnderWay ? Math.floor(rebuild.progress * 10) : 11;
      const done = tenth === -1 && shown.version === version ? `${wholeOf(shown)}\n` : '';
      const text = isUnderWay ? progressOf(rebuild) : `${done}version ${shown.version} is read`;
      if (err.isTerminal) err.write(`\r\u001b[2K${text}`);
      else if (now !== tenth) err.write(`${text}\n`);
      tenth = now;
    }
    const waits = isUnderWay && rebuild.state === 'ready' && rebuild.switch === 'manual';
    const ends = !isUnderWay || waits || ['failed', 'paused'].includes(rebuild.state);
    if (ends) {
      if (err.isTerminal) err.write('\n');
      if (isUnderWay && rebuild.state === 'failed') {
        throw new CommandFault(exitCodes.failure, `the rebuild failed: ${rebuild.detail ?? ''}`);
      }
      return shown;
    }
    await session.clock.sleep(PAUSE, signal);
  }
}

/** `[████████░░░░]  46 %`, of 0..1 */
export function barOf(progress: number): string {
  const full = Math.round(progress * BAR);
  const bar = `[${'█'.repeat(full)}${'░'.repeat(BAR - full)}]`;
  return `${bar} ${String(Math.floor(progress * 100)).padStart(3)} %`;
}

/** `[████████░░░░] 46 %  48,000 events  31,250/s  2 s left` */
export function progressOf(rebuild: ShownRebuild): string {
  const { progress, handled, events_per_second: rate, seconds_left: left, state } = rebuild;
  const { left_out: leftOut } = rebuild;
  const parts = [
    barOf(progress),
    ...(handled > 0 || state !== 'waiting' ? [`${handled.toLocaleString('en')} events`] : []),
    ...(leftOut > 0 ? [`${leftOut.toLocaleString('en')} left out`] : []),
    ...(state === 'filling' ? [`${rate.toLocaleString('en')}/s`] : [state.replace('_', ' ')]),
    ...(state === 'filling' && left !== null ? [`${duration(left)} left`] : []),
  ];
  return parts.join('  ');
}

/** `2 filling, 46 %, 2 s left`, for a line of a list */
export function inShort({ version, state, progress, seconds_left: left }: ShownRebuild): string {
  const parts = [`${version} ${state.replace('_', ' ')}`];
  if (state === 'filling') {
    parts.push(`${Math.floor(progress * 100)} %`);
    if (left !== null) parts.push(`${duration(left)} left`);
  }
  return parts.join(', ');
}

/** `[████████████] 100 %  48,000 events`, of one that is read */
const wholeOf = ({ handled }: ShownProjection): string =>
  `${barOf(1)}  ${handled.toLocaleString('en')} events`;

/** How the new generation differs, in lines. */
export function differenceOf(session: Session, { comparison }: ShownRebuild): string {
  if (comparison === null) return '';
  const { documents_before, documents_after, compared, different, complete, first } = comparison;
  const [after, before, keys, others] = [
    documents_after,
    documents_before,
    compared,
    different,
  ].map((count) => count.toLocaleString('en'));
  const looked = complete ? 'all keys' : `the first ${keys} keys`;
  const head = `${after} documents, ${before} before; ${others} differ of ${looked}`;
  const lines = first.map(({ key, difference, fields }) => {
    const what = fields.length === 0 ? '' : `: ${fields.join(', ')}`;
    return `  ${printable(key)} ${difference.replace('_', ' ')}${printable(what)}`;
  });
  const { paint } = session;
  return [different === 0 ? paint.good(head) : paint.warning(head), ...lines].join('\n');
}
