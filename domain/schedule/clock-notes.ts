import type { Instant } from '../clock.ts';
import { SECOND, formatWall } from './civil.ts';
import type { FireSource } from './fire-sets.ts';
import type { ResolvedWall, Zone } from './zone.ts';

/**
 * Note for a wall time that a clock change skips.
 * @param at the instant at which it fires instead
 */
export function movedNote(wall: number, zone: Zone, at: Instant): string {
  return (
    `${formatWall(wall)} does not exist in ${zone.name}, where the clock goes forward: ` +
    `fires by the offset before the change, at ${formatWall(at + zone.offsetAt(at))}`
  );
}

/** Note for wall times that a clock change skips and that do not fire. */
export function droppedNote(
  { count, first, last }: { readonly count: number; readonly first: number; readonly last: number },
  zone: Zone,
): string {
  const where = `in ${zone.name}, where the clock goes forward: left out`;
  if (count === 1) return `${formatWall(first)} does not exist ${where}`;
  return `${formatWall(first)} to ${formatWall(last)} (${count} times) do not exist ${where}`;
}

/** Note for a wall time that occurs twice. @param fires when it fires */
export function repeatedNoteText(wall: number, zone: Zone, fires: string): string {
  return `${formatWall(wall)} occurs twice in ${zone.name}, where the clock goes back: ${fires}`;
}

/** How a clock change affects a single wall time; null if it does not. */
export function wallNote(wall: number, zone: Zone, { at, kind }: ResolvedWall): string | null {
  if (kind === 'gap') return movedNote(wall, zone, at);
  return kind === 'overlap' ? repeatedNoteText(wall, zone, 'fires the first time') : null;
}

/**
 * Note for an elapsed-time rule that fires in both passes of a repeated hour; null if it does not.
 * @param at either of the two fires
 */
export function repeatedNote(zone: Zone, fires: FireSource, at: Instant): string | null {
  const wall = at + zone.offsetAt(at);
  const { at: first, again } = zone.resolve(wall);
  if (again === null) return null;
  if (at === first && fires.next(again) === again)
    return repeatedNoteText(wall, zone, 'fires both times');
  if (at === again && fires.next(first) === first) {
    return repeatedNoteText(wall, zone, 'fires both times, this is the second');
  }
  return null;
}

/** A rule whose interval counts real time. */
export interface ElapsedRule {
  readonly zone: Zone;
  readonly fires: FireSource;
  /** The interval, in milliseconds. */
  readonly step: number;
  /** The interval's phase on the wall clock at an offset; only differences matter. */
  readonly phaseOf: (offset: number) => number;
}

/** How a clock change affects a fire of a rule in real time; null if it does not. */
export function elapsedNote(rule: ElapsedRule, at: Instant): string | null {
  const { zone, fires, step, phaseOf } = rule;
  const repeated = repeatedNote(zone, fires, at);
  if (repeated !== null) return repeated;
  const previous = fires.previous(at - 1);
  if (previous === null) return null;
  const { offset, before, start } = zone.segmentAt(at);
  const shift = phaseOf(offset) - phaseOf(zone.offsetAt(previous));
  // A shorter interval also fires within the missing or repeated hour.
  if (step > Math.abs(shift) && shift !== 0) {
    const [way, effect] = shift > 0 ? ['forward', 'later'] : ['back', 'earlier'];
    return (
      `the clock of ${zone.name} goes ${way} by ${durationText(shift)} before this fire: the rule ` +
      `counts elapsed time, and its local times are ${durationText(shift)} ${effect} from here on`
    );
  }
  const gapEnd = start + offset - before;
  if (previous >= start || at >= gapEnd) return null;
  const [last, count] = [fires.previous(gapEnd - 1) ?? at, fires.count(at, gapEnd)];
  return droppedNote({ count, first: at + before, last: last + before }, zone);
}

/** `1 h`, `30 min`, `1 h 20 min`; seconds only if they are not 0. */
function durationText(shift: number): string {
  const seconds = Math.abs(shift) / SECOND;
  const parts: [number, string][] = [
    [Math.floor(seconds / 3600), 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ];
  return parts
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(' ');
}
