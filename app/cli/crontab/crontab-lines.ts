import { compileCron } from '../../../domain/schedule/cron.ts';
import { ScheduleError } from '../../../domain/schedule/schedule-error.ts';
import { unknownZone } from '../../../domain/schedule/zone-names.ts';
import { zoneOf } from '../../../domain/schedule/zone.ts';

/** A job of a crontab. */
export interface CrontabJob {
  /** From 1. */
  readonly line: number;
  /** Five fields, or one of the @aliases. */
  readonly schedule: string;
  /** Whose it is in a crontab of the system; null in a user's. */
  readonly user: string | null;
  readonly command: string;
  /** What cron would write to the command's standard input; null for nothing. */
  readonly stdin: string | null;
  /** The comment on the line above it; null for none. */
  readonly comment: string | null;
  /** The zone that the crontab sets for it; null where it sets none. */
  readonly zone: string | null;
}

/** A line that cannot be imported. */
export interface BadLine {
  readonly line: number;
  readonly text: string;
  /** What is wrong, and what to do. */
  readonly issue: string;
}

/** What stands in a crontab. */
export interface Crontab {
  readonly jobs: readonly CrontabJob[];
  readonly badLines: readonly BadLine[];
  /** Variables that only matter to commands, in the order in which they occur. */
  readonly variables: readonly string[];
}

/** Where a reader of lines has got to. */
interface Reading {
  comment: string | null;
  /** By variable: CRON_TZ wins over TZ. */
  readonly zones: Map<'CRON_TZ' | 'TZ', { readonly zone: string; readonly line: number }>;
}

const SETTING = /^(?:"([^"]*)"|'([^']*)'|([A-Za-z_]\w*))\s*=\s*(.*)$/;
const FIELDS = /^(\S+\s+\S+\s+\S+\s+\S+\s+\S+)(?:\s+(.*))?$/;
const ALIAS = /^(@\S+)(?:\s+(.*))?$/;

/**
 * Reads a crontab, crontab(5): comments, variables, `@daily` and the like, five fields, `%` in commands.
 * @param isSystem whether a user follows the five fields, as in /etc/crontab and /etc/cron.d
 */
export function readCrontab(text: string, isSystem: boolean): Crontab {
  const jobs: CrontabJob[] = [];
  const badLines: BadLine[] = [];
  const variables = new Set<string>();
  const reading: Reading = { comment: null, zones: new Map() };
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = index + 1;
    const content = raw.trim();
    const setting = SETTING.exec(content);
    if (content.startsWith('#')) {
      reading.comment = commentOf(content);
      continue;
    }
    if (setting !== null) readSetting(setting, line, reading, variables);
    else if (content !== '') {
      const found = readJob(content, line, isSystem, reading);
      if (typeof found === 'string') badLines.push({ line, text: content, issue: found });
      else jobs.push(found);
    }
    reading.comment = null;
  }
  return { jobs, badLines, variables: [...variables] };
}

/** The words of a comment; null for none, for a job that was commented out, and for the usual line of field names. */
function commentOf(content: string): string | null {
  const words = content.replace(/^#+\s*/, '').trim();
  const isJob = /^[-*@\d]/.test(words) || /^m\s+h\s+dom\b/i.test(words);
  return words === '' || isJob ? null : words;
}

function readSetting(
  setting: RegExpExecArray,
  line: number,
  { zones }: Reading,
  variables: Set<string>,
): void {
  const [, double, single, bare, given = ''] = setting;
  const name = double ?? single ?? bare ?? '';
  const value = /^(["'])(.*)\1$/.exec(given)?.[2] ?? given;
  if (name !== 'CRON_TZ' && name !== 'TZ') variables.add(name);
  else if (value === '') zones.delete(name);
  // POSIX writes names of the time zone database with a colon before them.
  else zones.set(name, { zone: value.replace(/^:/, ''), line });
}

/** @returns the job, or what is wrong with the line */
function readJob(
  content: string,
  line: number,
  isSystem: boolean,
  { comment, zones }: Reading,
): CrontabJob | string {
  const found = (content.startsWith('@') ? ALIAS : FIELDS).exec(content);
  if (found === null) {
    return 'has fewer than five fields and a command; complete it or make it a comment';
  }
  // A dash before the minute only keeps a job out of cron's own log.
  const schedule = (found[1] ?? '').replace(/^-(?=[*\d])/, '');
  const rest = found[2] ?? '';
  const fault = scheduleFault(schedule);
  if (fault !== null) return fault;
  const set = zones.get('CRON_TZ') ?? zones.get('TZ');
  if (set !== undefined && zoneOf(set.zone) === null) {
    return `the time zone of line ${set.line}: ${unknownZone(set.zone)}; correct it there`;
  }
  const [, user = '', work = ''] = isSystem
    ? (/^(\S+)(?:\s+(.*))?$/.exec(rest) ?? [])
    : ['', '', rest];
  const [command = '', ...input] = splitAtPercent(work);
  if (command.trim() === '') {
    return isSystem
      ? 'has no command after the user; without --system the field after the schedule is the command'
      : 'has no command; add one or make the line a comment';
  }
  return {
    line,
    schedule,
    user: isSystem ? user : null,
    command: command.trim(),
    stdin: input.length === 0 ? null : input.join('\n'),
    comment,
    zone: set === undefined ? null : set.zone,
  };
}

/** What keeps a schedule from being that of a task; null when nothing does. */
function scheduleFault(schedule: string): string | null {
  if (/^@reboot$/i.test(schedule)) {
    return '@reboot has no counterpart: the service does not fire when a machine starts; remove the line';
  }
  try {
    compileCron(schedule);
    return null;
  } catch (error) {
    if (error instanceof ScheduleError) return `${error.issue}; correct the schedule`;
    throw error;
  }
}

/** Splits a command at its `%`, of which the first ends it and the others end lines of its input; `\%` is a `%`. */
function splitAtPercent(work: string): string[] {
  return work.split(/(?<!\\)%/).map((piece) => piece.replaceAll('\\%', '%'));
}
