import { ScheduleError } from './schedule-error.ts';
import type { NthWeekday } from './month-table.ts';

/** What one of cron's fields may hold. */
export interface CronFieldShape {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
  /** Day fields alone take `?`. */
  readonly questionMark?: boolean;
}

/** What one of cron's fields says. */
export interface CronField {
  readonly values: ReadonlySet<number>;
  /** Whether it begins with `*` (or is `?`): such a field restricts nothing on its own. */
  readonly star: boolean;
  /** Whether a step (`/n`) occurs in it. */
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

/**
 * Reads one field of a cron expression.
 * @throws ScheduleError naming the field and the piece of it that is wrong.
 */
export function parseCronField(text: string, shape: CronFieldShape): CronField {
  const values = new Set<number>();
  const nth: NthWeekday[] = [];
  let lastDay = false;
  let stepped = false;
  for (const piece of text.split(',')) {
    if (piece === '') throw fault(shape, text, 'has an empty place in its list');
    if (piece === '?') {
      if (shape.questionMark !== true) {
        throw fault(shape, piece, 'stands only for day-of-month and day-of-week');
      }
      addRange(values, shape.min, shape.max, 1);
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

/** Adds `*`, `a`, `a-b`, each with or without `/n`; answers whether there was a step. */
function addPiece(values: Set<number>, piece: string, shape: CronFieldShape): boolean {
  const [range = '', stepText, ...rest] = piece.split('/');
  if (rest.length > 0) throw fault(shape, piece, 'has more than one step');
  const step = stepText === undefined ? 1 : parseStep(stepText, piece, shape);
  if (range === '*') {
    addRange(values, shape.min, shape.max, step);
    return stepText !== undefined;
  }
  const [fromText = '', toText, ...more] = range.split('-');
  if (more.length > 0) throw fault(shape, piece, 'is not a range');
  const from = parseValue(fromText, piece, shape);
  if (toText === undefined) {
    addRange(values, from, stepText === undefined ? from : shape.max, step);
    return stepText !== undefined;
  }
  let to = parseValue(toText, piece, shape);
  if (shape === dayOfWeekShape) {
    // Sunday is both 0 and 7: it begins a week (0-7, 7-2) and ends one (FRI-SUN).
    if (toText === '7' || (to === 0 && from > 0)) to = 7;
  }
  if (to < from) throw fault(shape, piece, 'ends before it begins');
  addRange(values, from, to, step, shape === dayOfWeekShape ? 7 : 0);
  return stepText !== undefined;
}

function addRange(values: Set<number>, from: number, to: number, step: number, wrap = 0): void {
  for (let value = from; value <= to; value += step) {
    values.add(wrap > 0 ? value % wrap : value);
  }
}

function parseStep(text: string, piece: string, shape: CronFieldShape): number {
  if (!/^\d{1,3}$/.test(text)) throw fault(shape, piece, `has no whole number as its step`);
  const step = Number(text);
  const size = shape.max - shape.min + 1;
  if (step < 1) throw fault(shape, piece, 'has a step of 0');
  if (step > size) throw fault(shape, piece, `has a step beyond the field's ${size} values`);
  return step;
}

/** A number or a name; 7 is Sunday. */
function parseValue(text: string, piece: string, shape: CronFieldShape): number {
  const named = shape.names?.indexOf(text.toUpperCase()) ?? -1;
  if (named >= 0) return named + shape.min;
  if (!/^\d{1,2}$/.test(text)) throw fault(shape, piece, 'is not understood');
  const value = Number(text);
  if (shape === dayOfWeekShape && value === 7) return 0;
  if (value < shape.min || value > shape.max) {
    const max = shape === dayOfWeekShape ? 7 : shape.max;
    throw fault(shape, piece, `is outside ${shape.min}–${max}`);
  }
  return value;
}

function parseNth(piece: string, shape: CronFieldShape): NthWeekday {
  const [day = '', count] = piece.split('#');
  if (count === undefined) {
    return { weekday: parseValue(piece.slice(0, -1), piece, shape), nth: -1 };
  }
  if (!/^[1-5]$/.test(count)) throw fault(shape, piece, 'counts outside 1–5 behind its #');
  return { weekday: parseValue(day, piece, shape), nth: Number(count) };
}

function fault(shape: CronFieldShape, piece: string, what: string): ScheduleError {
  return new ScheduleError('schedule_expr', `the ${shape.name} field: "${piece}" ${what}`);
}
