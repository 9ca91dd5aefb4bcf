import type { Instant } from '../clock.ts';
import { SECOND, wallText } from './civil.ts';
import type { ResolvedWall, Zone } from './zone.ts';
import type { FireSource } from './zoned-fires.ts';

/** Says that a wall time is missing from the clock and fires later. @param at when it fires */
export function movedText(wall: number, zone: Zone, at: Instant): string {
  return (
    `${wallText(wall)} does not exist in ${zone.name}, where the clock goes forward: ` +
    `fires by the offset before the change, at ${wallText(at + zone.offsetAt(at))}`
  );
}

/** Says which of some wall times are missing from the clock and do not fire. */
export function droppedText(
  { count, first, last }: { readonly count: number; readonly first: number; readonly last: number },
  zone: Zone,
): string {
  const where = `in ${zone.name}, where the clock goes forward: left out`;
  if (count === 1) return `${wallText(first)} does not exist ${where}`;
  return `${wallText(first)} to ${wallText(last)} (${count} times) do not exist ${where}`;
}

/** Says that a wall time comes twice. @param fires what follows from it */
export function twiceText(wall: number, zone: Zone, fires: string): string {
  return `${wallText(wall)} comes twice in ${zone.name}, where the clock goes back: ${fires}`;
}

/** What a clock change does to a single wall time; null when it does nothing. */
export function singleNote(wall: number, zone: Zone, { at, kind }: ResolvedWall): string | null {
  if (kind === 'gap') return movedText(wall, zone, at);
  return kind === 'overlap' ? twiceText(wall, zone, 'fires the first time') : null;
}

/** Whether a rule that follows elapsed time fires in both passes of a repeated hour. @param at one of the two */
export function repeatedNote(zone: Zone, fires: FireSource, at: Instant): string | null {
  const wall = at + zone.offsetAt(at);
  const { at: first, again } = zone.resolve(wall);
  if (again === null) return null;
  if (at === first && fires.next(again) === again) return twiceText(wall, zone, 'fires both times');
  if (at === again && fires.next(first) === first) {
    return twiceText(wall, zone, 'fires both times, this is the second');
  }
  return null;
}

/** A rule that counts its interval in real time. */
export interface ElapsedRule {
  readonly zone: Zone;
  readonly fires: FireSource;
  /** Its interval in milliseconds. */
  readonly step: number;
  /** Where its interval stands on the wall clock while the zone has some offset; only differences count. */
  readonly phaseOf: (offset: number) => number;
}

/** What a clock change does to a fire of a rule that counts its interval in real time; null when it does nothing. */
export function elapsedNote(rule: ElapsedRule, at: Instant): string | null {
  const { zone, fires, step, phaseOf } = rule;
  const repeated = repeatedNote(zone, fires, at);
  if (repeated !== null) return repeated;
  const previous = fires.previous(at - 1);
  if (previous === null) return null;
  const { offset, before, start } = zone.segmentAt(at);
  const shift = phaseOf(offset) - phaseOf(zone.offsetAt(previous));
  // A shorter interval goes on within the hour that is missing or repeated.
  if (step > Math.abs(shift) && shift !== 0) {
    const [way, effect] = shift > 0 ? ['forward', 'later'] : ['back', 'earlier'];
    return (
      `the clock of ${zone.name} goes ${way} by ${lengthText(shift)} before this fire: the rule ` +
      `counts elapsed time, and its local times are ${lengthText(shift)} ${effect} from here on`
    );
  }
  const gapEnd = start + offset - before;
  if (previous >= start || at >= gapEnd) return null;
  const [last, count] = [fires.previous(gapEnd - 1) ?? at, fires.count(at, gapEnd)];
  return droppedText({ count, first: at + before, last: last + before }, zone);
}

/** `1 h`, `30 min`, `1 h 20 min`; seconds only where there are any. */
function lengthText(shift: number): string {
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
