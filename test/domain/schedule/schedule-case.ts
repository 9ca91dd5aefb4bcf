import type { ScheduleKind } from '../../../domain/vocabulary.ts';

/** A rule with its fires according to a standard or a printed calendar. */
export interface ScheduleCase {
  readonly name: string;
  readonly kind: ScheduleKind;
  readonly expr: string;
  readonly timezone: string;
  /** The first fires are those strictly after this instant. */
  readonly after: string;
  /** The first fires, as local times with offset. */
  readonly fires: readonly string[];
  /** Whether there are no further fires. */
  readonly ends: boolean;
}

const offsets: Readonly<Record<string, string>> = {
  UTC: '+00:00',
  EST: '-05:00',
  EDT: '-04:00',
  CET: '+01:00',
  CEST: '+02:00',
};

/**
 * Expands a list of local times. A group is `1997-09 EDT 2 4-6 @09:00,12:30`: month, offset (or its
 * abbreviation), days and ranges of days, times. Without times, those of the group before apply.
 * Groups are split by `|`.
 */
export function localTimes(groups: string, time = '09:00'): string[] {
  const found: string[] = [];
  let times = [time];
  for (const group of groups.split('|')) {
    const [month = '', zone = '', ...rest] = group.trim().split(' ');
    const days: number[] = [];
    for (const item of rest) {
      if (item.startsWith('@')) {
        times = item.slice(1).split(',');
        continue;
      }
      const [from = '', to = from] = item.split('-');
      for (let day = Number(from); day <= Number(to); day++) days.push(day);
    }
    for (const day of days) {
      for (const each of times) {
        const full = each.length === 5 ? `${each}:00` : each;
        const date = `${month}-${String(day).padStart(2, '0')}`;
        found.push(`${date}T${full}${offsets[zone] ?? zone}`);
      }
    }
  }
  return found;
}
