import { compileCron } from '../../../domain/schedule/cron.ts';
import { ScheduleError } from '../../../domain/schedule/schedule-error.ts';
import { unknownZoneMessage } from '../../../domain/schedule/zone-names.ts';
import { zoneOf } from '../../../domain/schedule/zone.ts';

/** A job of a crontab. */
export interface CrontabJob {
  /** From 1. */
  readonly line: number;
  /** Five fields, or one of the @aliases. */
  readonly schedule: string;
  /** The user in a system crontab; null in a user's crontab. */
  readonly user: string | null;
  readonly command: string;
  /** The command's standard input; null for none. */
  readonly stdin: string | null;
  /** The comment on the line above it; null for none. */
  readonly comment: string | null;
  /** The zone set by the crontab; null for none. */
  readonly zone: string | null;
}

/** A line that cannot be imported. */
export interface BadLine {
  readonly line: number;
  readonly text: string;
  /** What is wrong and what to do. */
  readonly issue: string;
}

/** A parsed crontab. */
export interface Crontab {
  readonly jobs: readonly CrontabJob[];
  readonly badLines: readonly BadLine[];
  /** Variables other than time zones, in their order. */
  readonly variables: readonly string[];
}

/** The state between lines. */
interface ParserState {
  comment: string | null;
  /** CRON_TZ overrides TZ. */
  readonly zones: Map<'CRON_TZ' | 'TZ', { readonly zone: string; readonly line: number }>;
}

const SETTING = /^(?:"([^"]*)"|'([^']*)'|([A-Za-z_]\w*))\s*=\s*(.*)$/;
const FIELDS = /^(\S+\s+\S+\s+\S+\s+\S+\s+\S+)(?:\s+(.*))?$/;
const ALIAS = /^(@\S+)(?:\s+(.*))?$/;

/**
 * Parses a crontab as in crontab(5): comments, variables, `@daily` and others, five fields, `%` in commands.
 * @param isSystem whether a user precedes the command, as in /etc/crontab and /etc/cron.d
 */
export function parseCrontab(text: string, isSystem: boolean): Crontab {
  const jobs: CrontabJob[] = [];
  const badLines: BadLine[] = [];
  const variables = new Set<string>();
  const state: ParserState = { comment: null, zones: new Map() };
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = index + 1;
    const content = raw.trim();
    const setting = SETTING.exec(content);
    if (content.startsWith('#')) {
      state.comment = commentOf(content);
      continue;
    }
    if (setting !== null) readSetting(setting, line, state, variables);
    else if (content !== '') {
      const found = readJob(content, line, isSystem, state);
      if (typeof found === 'string') badLines.push({ line, text: content, issue: found });
      else jobs.push(found);
    }
    state.comment = null;
  }
  return { jobs, badLines, variables: [...variables] };
}

/** A comment's text; null if it is empty, a disabled job, or the usual line of field names. */
function commentOf(content: string): string | null {
  const words = content.replace(/^#+\s*/, '').trim();
  const isJob = /^[-*@\d]/.test(words) || /^m\s+h\s+dom\b/i.test(words);
  return words === '' || isJob ? null : words;
}

function readSetting(
  setting: RegExpExecArray,
  line: number,
  { zones }: ParserState,
  variables: Set<string>,
): void {
  const [, double, single, bare, given = ''] = setting;
  const name = double ?? single ?? bare ?? '';
  const value = /^(["'])(.*)\1$/.exec(given)?.[2] ?? given;
  if (name !== 'CRON_TZ' && name !== 'TZ') variables.add(name);
  else if (value === '') zones.delete(name);
  // In POSIX a colon precedes names of the time zone database.
  else zones.set(name, { zone: value.replace(/^:/, ''), line });
}

/** Returns the job, or what is wrong with the line. */
function readJob(
  content: string,
  line: number,
  isSystem: boolean,
  { comment, zones }: ParserState,
): CrontabJob | string {
  const found = (content.startsWith('@') ? ALIAS : FIELDS).exec(content);
  if (found === null) {
    return 'needs five fields and a command; complete it or make it a comment';
  }
  // A dash before the minute keeps a job out of cron's log.
  const schedule = (found[1] ?? '').replace(/^-(?=[*\d])/, '');
  const rest = found[2] ?? '';
  const problem = scheduleProblem(schedule);
  if (problem !== null) return problem;
  const set = zones.get('CRON_TZ') ?? zones.get('TZ');
  if (set !== undefined && zoneOf(set.zone) === null) {
    return `the time zone of line ${set.line}: ${unknownZoneMessage(set.zone)}; correct it there`;
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

/** Why a task cannot have a schedule; null if it can. */
function scheduleProblem(schedule: string): string | null {
  if (/^@reboot$/i.test(schedule)) {
    return '@reboot has no equivalent: the service does not fire when a machine starts; remove the line';
  }
  try {
    compileCron(schedule);
    return null;
  } catch (error) {
    if (error instanceof ScheduleError) return `${error.issue}; correct the schedule`;
    throw error;
  }
}

/** Splits at `%`: the first ends the command, others end lines of its input; `\%` is a `%`. */
function splitAtPercent(work: string): string[] {
  return work.split(/(?<!\\)%/).map((piece) => piece.replaceAll('\\%', '%'));
}
