import { expressionError, type ScheduleError } from './schedule-error.ts';
import type { NthWeekday } from './month-table.ts';

/** The values and names that a cron field allows. */
export interface CronFieldShape {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
  /** Only the day fields allow `?`. */
  readonly questionMark?: boolean;
}

/** A parsed cron field. */
export interface CronField {
  readonly values: ReadonlySet<number>;
  /** Whether the field begins with `*` or is `?`; such a field does not restrict by itself. */
  readonly star: boolean;
  /** Whether the field contains a step (`/n`). */
  readonly stepped: boolean;
  /** `L` in day-of-month. */
  readonly lastDay: boolean;
  /** `5L` and `1#2` in day-of-week. */
  readonly nth: readonly NthWeekday[];
}

const monthNames = 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ');
const dayNames = 'SUN MON TUE WED THU FRI SAT'.split(' ');

export const secondShape: CronFieldShape = { name: 'second', min: 0, max: 59 };
export const minuteShape: CronFieldShape = { name: 'minute', min: 0, max: 59 };
export const hourShape: CronFieldShape = { name: 'hour', min: 0, max: 23 };
export const dayOfMonthShape: CronFieldShape = {
  name: 'day-of-month',
  min: 1,
  max: 31,
  questionMark: true,
};
export const monthShape: CronFieldShape = { name: 'month', min: 1, max: 12, names: monthNames };
export const dayOfWeekShape: CronFieldShape = {
  name: 'day-of-week',
  min: 0,
  max: 6,
  names: dayNames,
  questionMark: true,
};

/** Sunday at the end of a week. */
const SUNDAY_AT_END = 7;

/**
 * Parses one field of a cron expression.
 * @throws ScheduleError naming the field and the invalid item
 */
export function parseCronField(text: string, shape: CronFieldShape): CronField {
  const values = new Set<number>();
  const nth: NthWeekday[] = [];
  let lastDay = false;
  let stepped = false;
  for (const piece of text.split(',')) {
    if (piece === '') throw fault(shape, text, 'has an empty item in its list');
    if (piece === '?') {
      if (shape.questionMark !== true) {
        throw fault(shape, piece, 'is allowed only in day-of-month and day-of-week');
      }
      addRange(values, shape.min, shape.max, 1, shape);
    } else if (shape === dayOfMonthShape && /^l$/i.test(piece)) {
      lastDay = true;
    } else if (shape === dayOfWeekShape && /^[^#/-]+(?:l|#.*)$/i.test(piece)) {
      nth.push(parseNth(piece, shape));
    } else {
      stepped = addPiece(values, piece, shape) || stepped;
    }
  }
  return { values, star: /^[*?]/.test(text), stepped, lastDay, nth };
}

/** Adds `*`, `a` or `a-b`, with or without `/n`; returns whether there was a step. */
function addPiece(values: Set<number>, piece: string, shape: CronFieldShape): boolean {
  const [range = '', stepText, ...rest] = piece.split('/');
  if (rest.length > 0) throw fault(shape, piece, 'has more than one step');
  const step = stepText === undefined ? 1 : parseStep(stepText, piece, shape);
  if (range === '*') {
    addRange(values, shape.min, shape.max, step, shape);
    return stepText !== undefined;
  }
  const [fromText = '', toText, ...more] = range.split('-');
  if (more.length > 0) throw fault(shape, piece, 'is not a valid range');
  let from = parseValue(fromText, piece, shape);
  if (toText === undefined) {
    const to = stepText === undefined ? from : Math.max(from, shape.max);
    addRange(values, from, to, step, shape);
    return stepText !== undefined;
  }
  let to = parseValue(toText, piece, shape);
  if (shape === dayOfWeekShape) [from, to] = weekdayRange(from, to, isName(fromText));
  if (to < from) throw fault(shape, piece, 'ends before it begins');
  addRange(values, from, to, step, shape);
  return stepText !== undefined;
}

/**
 * The ends of a weekday range as numbers from 0 to 7, where both mean Sunday. Sunday can begin a
 * range (`SUN-TUE`, `7-2`) or end one (`FRI-SUN`, `5-0`). Sunday to Sunday is one day (`7-7`,
 * `SUN-7`, `7-0`), except `0-7`, which is the whole week.
 */
function weekdayRange(from: number, to: number, fromName: boolean): [number, number] {
  if (from > 0 && to === 0) return [from, SUNDAY_AT_END];
  if (from === SUNDAY_AT_END && to < from) return [0, to];
  if (fromName && from === 0 && to === SUNDAY_AT_END) return [0, 0];
  return [from, to];
}

function addRange(
  values: Set<number>,
  from: number,
  to: number,
  step: number,
  shape: CronFieldShape,
): void {
  for (let value = from; value <= to; value += step) {
    values.add(shape === dayOfWeekShape ? value % SUNDAY_AT_END : value);
  }
}

function parseStep(text: string, piece: string, shape: CronFieldShape): number {
  if (!/^\d{1,3}$/.test(text)) throw fault(shape, piece, 'has a step that is not a whole number');
  const step = Number(text);
  const size = shape.max - shape.min + 1;
  if (step < 1) throw fault(shape, piece, 'has a step of 0');
  if (step > size) throw fault(shape, piece, `has a step larger than the field's ${size} values`);
  return step;
}

const isName = (text: string): boolean => /^[a-z]/i.test(text);

/** Parses a number or a name; Sunday's name gives 0, and {@link weekdayRange} decides on 7. */
function parseValue(text: string, piece: string, shape: CronFieldShape): number {
  const named = shape.names?.indexOf(text.toUpperCase()) ?? -1;
  if (named >= 0) return named + shape.min;
  if (!/^\d{1,2}$/.test(text)) throw fault(shape, piece, 'is not valid');
  const value = Number(text);
  const max = shape === dayOfWeekShape ? SUNDAY_AT_END : shape.max;
  if (value < shape.min || value > max) {
    throw fault(shape, piece, `is outside ${shape.min}–${max}`);
  }
  return value;
}

function parseNth(piece: string, shape: CronFieldShape): NthWeekday {
  const [day = '', count] = piece.split('#');
  if (count === undefined) {
    return { weekday: parseValue(piece.slice(0, -1), piece, shape) % SUNDAY_AT_END, nth: -1 };
  }
  if (!/^[1-5]$/.test(count)) throw fault(shape, piece, 'has a number outside 1–5 after the #');
  return { weekday: parseValue(day, piece, shape) % SUNDAY_AT_END, nth: Number(count) };
}

function fault(shape: CronFieldShape, piece: string, what: string): ScheduleError {
  return expressionError(`the ${shape.name} field: "${piece}" ${what}`);
}
