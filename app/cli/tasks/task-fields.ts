import { Option, type Command } from 'commander';
import {
  backoffStrategies,
  misfirePolicies,
  overlapPolicies,
  scheduleKinds,
  type ScheduleKind,
} from '../../../domain/vocabulary.ts';
import { usageFault } from '../calling/faults.ts';
import type { Surroundings } from '../calling/surroundings.ts';
import { isObject, readDocument, several, valueOf, wholeNumberOf } from '../terminal/values.ts';

/** What a task's options say, as commander gives it. */
export interface TaskFieldOptions {
  readonly file?: string;
  readonly title?: string;
  readonly description?: string;
  readonly cron?: string;
  readonly rrule?: string;
  readonly once?: string;
  readonly event?: string;
  readonly zone?: string;
  readonly payload?: string;
  readonly createdBy?: string;
  readonly priority?: number;
  readonly maxRetries?: number;
  readonly overlap?: string;
  readonly misfire?: string;
  readonly backoff?: string;
  readonly concurrencyKey?: string;
  readonly tag?: readonly string[];
  readonly set?: readonly string[];
}

/** The schedule alone, by the option of its kind. @param zone what the zone is where none is given */
export function addScheduleOptions(command: Command, zone = ' (UTC)'): Command {
  return command
    .option('--cron <expression>', 'schedule: five or six fields')
    .option('--rrule <rule>', 'schedule: a rule of RFC 5545')
    .option('--once <instant>', 'schedule: a single time')
    .option('--event <pattern>', 'schedule: on events whose topic matches')
    .option('--zone <name>', `the schedule's time zone${zone}`);
}

/**
 * The options for the fields of a task; `--set` reaches those that have none of their own.
 * @param of a new task says what it has where an option is left out
 */
export function addTaskFieldOptions(command: Command, of: 'new' | 'existing'): Command {
  const unless = (said: string): string => (of === 'new' ? ` (${said})` : '');
  command
    .option('-f, --file <file>', 'the fields from JSON or YAML; - is the standard input')
    .option('--title <text>', 'up to 200 characters')
    .option('--description <text>', `up to 2,000 characters${unless('the title')}`);
  addScheduleOptions(command, unless('UTC'))
    .option(
      '--payload <json>',
      `what it does, as JSON, or @file in JSON or YAML${unless('no step')}`,
    )
    .option('--created-by <agent>', `its owner${unless('the caller')}`)
    .option('--priority <n>', '1 to 9, 1 goes first', wholeNumberOf(1, 9))
    .option('--max-retries <n>', 'of a failed run', wholeNumberOf(0, 50))
    .option('--concurrency-key <key>', 'at most one run at a time of the tasks with this key')
    .option('--tag <tag>', 'a tag, repeatable', several)
    .option(
      '--set <field=value>',
      'any other field, the value as JSON or text, repeatable',
      several,
    );
  const choices = [
    ['--overlap <policy>', 'while another of its runs is unfinished', overlapPolicies],
    ['--misfire <policy>', 'of fires that come too late', misfirePolicies],
    ['--backoff <strategy>', 'between the attempts of a run', backoffStrategies],
  ] as const;
  for (const [flags, what, allowed] of choices) {
    command.addOption(new Option(flags, what).choices([...allowed]));
  }
  return command;
}

/**
 * The fields that were given, under the names of the interface: of the file, and over it those of the options.
 * @throws CommandFault for two schedules, a file or payload that can't be read, or a `--set` without `=`
 */
export async function taskFieldsOf(
  options: TaskFieldOptions,
  surroundings: Pick<Surroundings, 'input'>,
): Promise<Record<string, unknown>> {
  const file = options.file === undefined ? {} : await readDocument(options.file, surroundings);
  if (!isObject(file)) throw usageFault(`${options.file ?? ''} holds no object with fields`);
  const { payload } = options;
  const named = {
    title: options.title,
    description: options.description,
    ...scheduleOf(options),
    payload: payload === undefined ? undefined : await payloadOf(payload, surroundings),
    created_by: options.createdBy,
    priority: options.priority,
    max_retries: options.maxRetries,
    overlap_policy: options.overlap,
    misfire_policy: options.misfire,
    backoff_strategy: options.backoff,
    concurrency_key: options.concurrencyKey,
    tags: options.tag,
  };
  const given = Object.entries(named).filter(([, value]) => value !== undefined);
  return {
    ...file,
    ...Object.fromEntries(given),
    ...Object.fromEntries((options.set ?? []).map(pair)),
  };
}

/** `schedule_kind`, `schedule_expr` and `timezone`, as far as they were given. */
export function scheduleOf(options: TaskFieldOptions): Record<string, unknown> {
  const given = scheduleKinds.flatMap((kind: ScheduleKind) => {
    const expr = options[kind];
    return expr === undefined ? [] : [{ schedule_kind: kind, schedule_expr: expr }];
  });
  if (given.length > 1)
    throw usageFault('a task has one schedule: --cron, --rrule, --once or --event');
  return { ...given[0], ...(options.zone === undefined ? {} : { timezone: options.zone }) };
}

async function payloadOf(
  text: string,
  surroundings: Pick<Surroundings, 'input'>,
): Promise<unknown> {
  if (text.startsWith('@')) return readDocument(text.slice(1), surroundings);
  const value = valueOf(text, '--payload');
  if (isObject(value)) return value;
  throw usageFault('--payload is no JSON object, such as {"pipeline": [{"uses": "echo"}]}');
}

function pair(text: string): [string, unknown] {
  const [, field, value] = /^([a-z_]+)=(.*)$/s.exec(text) ?? [];
  if (field !== undefined && value !== undefined) return [field, valueOf(value, `--set ${field}`)];
  throw usageFault(`--set ${text}: it must be like field=value`);
}
