import type { Instant } from '../clock.ts';
import { ScheduleError } from './schedule-error.ts';
import type { FireSource } from './zoned-fires.ts';
import type { Zone } from './zone.ts';
export function compileRrule(
  expr: string,
  zone: Zone,
  anchor: Instant,
): { fires: FireSource; zone: Zone; warnings: readonly string[] } {
  throw new ScheduleError('schedule_expr', `rrule is not ready ${expr}${zone.name}${anchor}`);
}
