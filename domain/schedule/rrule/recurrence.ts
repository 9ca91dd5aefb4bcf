import { expressionError } from '../schedule-error.ts';
import { TimestampError, wallOf } from '../timestamp.ts';
import { unknownZoneMessage } from '../zone-names.ts';
import { zoneOf, type Zone } from '../zone.ts';

/** A DATE or DATE-TIME value of iCalendar. */
export interface IcalTime {
  readonly wall: number;
  /** Its own zone: that of its TZID, or UTC for a `Z`; null if it is floating. */
  readonly zone: Zone | null;
  /** A date without a time of day; `wall` is its midnight. */
  readonly dateOnly: boolean;
}

/** The parsed lines of a recurrence. */
export interface Recurrence {
  /** The value after `RRULE:`. */
  readonly rule: string;
  readonly dtstart: IcalTime | null;
  readonly exdates: readonly IcalTime[];
  readonly rdates: readonly IcalTime[];
  /** Parts that were ignored, as RFC 5545 requires. */
  readonly warnings: readonly string[];
}

/** A property's parameter (RFC 5545, 3.2). */
interface Parameter {
  /** The name in upper case. */
  readonly name: string;
  /** Without quotes. */
  readonly value: string;
}

/**
 * Parses a recurrence (RFC 5545, 3.3.10 and 3.8.5): one RRULE (its name is optional), at most one
 * DTSTART, any EXDATE and RDATE, each on its own line. Folded lines are joined; a space before a
 * property's name also ends a line. Unknown parameters are ignored with a warning (3.2:
 * "Applications MUST ignore x-param and iana-param values they don't recognize").
 * @throws ScheduleError naming the invalid line
 */
export function parseRecurrence(text: string): Recurrence {
  let rule: string | null = null;
  let dtstart: IcalTime | null = null;
  const exdates: IcalTime[] = [];
  const rdates: IcalTime[] = [];
  const warnings: string[] = [];
  for (const line of linesOf(text)) {
    const found = /^([A-Za-z-]+)((?:;(?:"[^"]*"|[^":])*)?):(.*)$/.exec(line);
    const name = found === null ? 'RRULE' : (found[1] ?? '').toUpperCase();
    const parameters = parametersOf(name, found?.[2] ?? '');
    const ignored = parameters.filter((each) => name === 'RRULE' || !timeParameters.has(each.name));
    warnings.push(...ignored.map((each) => `${name}: the parameter ${each.name} is ignored`));
    const value = found === null ? line : (found[3] ?? '').trim();
    if (found === null && !/^[A-Za-z-]+=/.test(line))
      throw expressionError(`"${line}" is not a valid line`);
    switch (name) {
      case 'RRULE':
        if (rule !== null) throw expressionError('has more than one RRULE');
        rule = value;
        break;
      case 'DTSTART':
        if (dtstart !== null) throw expressionError('has more than one DTSTART');
        dtstart = parseTimes(name, parameters, value)[0] ?? null;
        if (value.includes(',')) throw expressionError('DTSTART must be one time, not a list');
        break;
      case 'EXDATE':
        exdates.push(...parseTimes(name, parameters, value));
        break;
      case 'RDATE':
        rdates.push(...parseTimes(name, parameters, value));
        break;
      default:
        throw expressionError(
          `the property ${name} is not supported (only RRULE, DTSTART, EXDATE, RDATE)`,
        );
    }
  }
  if (rule === null) throw expressionError('has no RRULE');
  return { rule, dtstart, exdates, rdates, warnings: [...new Set(warnings)] };
}

/**
 * Parses `19970902`, `19970902T090000` or `19970902T090000Z`.
 * @throws ScheduleError naming the part it belongs to
 */
export function parseIcalTime(part: string, text: string, zone: Zone | null): IcalTime {
  const found = /^(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(\d{2})(Z)?)?$/i.exec(text);
  if (found === null) {
    throw expressionError(
      `${part}: "${text}" is not a time such as 20260329T090000 or 20260329T070000Z`,
    );
  }
  const number = (index: number): number => Number(found[index] ?? 0);
  if (number(1) < 1900) throw expressionError(`${part}: the year of "${text}" is before 1900`);
  const utc = found[7] !== undefined;
  if (utc && zone !== null) throw expressionError(`${part}: "${text}" has both a TZID and a Z`);
  try {
    const wall = wallOf(number(1), number(2), number(3), number(4), number(5), number(6));
    return { wall, zone: utc ? zoneOf('UTC') : zone, dateOnly: found[4] === undefined };
  } catch (error) {
    if (error instanceof TimestampError)
      throw expressionError(`${part}: "${text}": ${error.message}`);
    throw error;
  }
}

function linesOf(text: string): string[] {
  return (
    text
      // Matches a single space: matching runs would take quadratic time.
      .replace(/"[^"\r\n]*"|\s(?=(?:RRULE|DTSTART|EXDATE|RDATE|EXRULE)[:;])/gi, (found: string) =>
        found.startsWith('"') ? found : '\n',
      )
      .replace(/\r?\n[ \t]/g, '')
      .split(/\r?\n/)
      .map((line) => line.trim())
      .filter((line) => line !== '')
  );
}

/** The supported parameters of times. */
const timeParameters: ReadonlySet<string> = new Set(['TZID', 'VALUE']);

/**
 * Parses parameters; quoted values may contain `:`, `;` and `,`.
 * @param text each parameter with the semicolon before it
 */
function parametersOf(property: string, text: string): Parameter[] {
  return (text.match(/;(?:"[^"]*"|[^";])*/g) ?? []).map((each) => {
    const found = /^;([A-Z0-9-]+)=(.*)$/is.exec(each);
    if (found === null) {
      const written = each.slice(1);
      throw expressionError(
        `${property}: the parameter "${written}" is not of the form NAME=value`,
      );
    }
    const [, name = '', value = ''] = found;
    return { name: name.toUpperCase(), value: value.replace(/^"(.*)"$/s, '$1') };
  });
}

function parseTimes(name: string, parameters: readonly Parameter[], text: string): IcalTime[] {
  let zone: Zone | null = null;
  for (const { name: key, value } of parameters) {
    if (key === 'TZID') {
      zone = zoneOf(value);
      if (zone === null) throw expressionError(`${name}: TZID ${unknownZoneMessage(value)}`);
    } else if (key === 'VALUE' && !/^DATE(-TIME)?$/i.test(value)) {
      throw expressionError(`${name}: VALUE=${value} is not supported (only DATE and DATE-TIME)`);
    }
  }
  return text.split(',').map((each) => parseIcalTime(name, each.trim(), zone));
}
