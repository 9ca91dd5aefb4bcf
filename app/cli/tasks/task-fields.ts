import {
  backoffStrategies,
  misfirePolicies,
  overlapPolicies,
  scheduleKinds,
} from '../../../domain/vocabulary.ts';
import { usageError } from '../calling/command-errors.ts';
import type { CliEnvironment } from '../calling/cli-environment.ts';
import {
  choice,
  repeatable,
  short,
  text,
  wholeNumber,
  type DeclaredOptions,
  type OptionValues,
} from '../options.ts';
import { isObject, parseValue, readDocument, readObject } from '../terminal/values.ts';

/** The options for a schedule. @param zone the default zone, as the help shows it */
export const scheduleOptions = (zone = ' (default: UTC)') =>
  ({
    cron: text('expression', 'cron schedule of five or six fields'),
    rrule: text('rule', 'recurrence rule of RFC 5545'),
    once: text('instant', 'a single time'),
    event: text('pattern', 'events whose topic matches'),
    zone: text('name', `the schedule's time zone${zone}`),
  }) satisfies DeclaredOptions;

/** The options for the fields of a task; `--set` sets the others. @param isNew whether defaults apply and are shown */
export function taskFieldOptions(isNew: boolean) {
  const otherwise = (value: string): string => (isNew ? ` (default: ${value})` : '');
  return {
    file: short('f', text('file', 'read fields from JSON or YAML; - is standard input')),
    title: text('text', 'up to 200 characters'),
    description: text('text', `up to 2,000 characters${otherwise('the title')}`),
    ...scheduleOptions(otherwise('UTC')),
    payload: text('json', `the work, as JSON or @file${otherwise('no step')}`),
    paramsSchema: text('json', "JSON Schema of the payload's params, as JSON or @file"),
    createdBy: text('agent', `the owner${otherwise('the caller')}`),
    priority: wholeNumber('n', '1-9; 1 runs first', 1, 9),
    maxRetries: wholeNumber('n', 'retries of a failed run', 0, 50),
    concurrencyKey: text('key', 'run one task with this key at a time'),
    tag: repeatable('tag', 'a tag'),
    set: repeatable('field=value', 'any other field; the value is JSON or a string'),
    overlap: choice('policy', 'if an earlier run is unfinished', overlapPolicies),
    misfire: choice('policy', 'for fires that are too late', misfirePolicies),
    backoff: choice('strategy', 'delay between attempts of a run', backoffStrategies),
  } satisfies DeclaredOptions;
}

export type TaskFieldOptions = OptionValues<ReturnType<typeof taskFieldOptions>>;

/**
 * The given fields by their names in the interface. Options override the file, and `--set` overrides both.
 * @throws CommandError for two schedules, an unreadable file or payload, or a `--set` without `=`
 */
export async function taskFieldsOf(
  options: TaskFieldOptions,
  source: Pick<CliEnvironment, 'input'>,
): Promise<Record<string, unknown>> {
  const file = options.file === undefined ? {} : await readDocument(options.file, source);
  if (!isObject(file)) throw usageError(`${options.file ?? ''} must contain an object with fields`);
  const { payload, paramsSchema: schema } = options;
  const named = {
    title: options.title,
    description: options.description,
    ...scheduleOf(options),
    payload: payload === undefined ? undefined : await readObject(payload, '--payload', source),
    params_schema:
      schema === undefined ? undefined : await readObject(schema, '--params-schema', source),
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
    ...Object.fromEntries((options.set ?? []).map(parseSetting)),
  };
}

/** `schedule_kind`, `schedule_expr` and `timezone`, as far as they were given. @throws CommandError for two schedules */
export function scheduleOf(
  options: OptionValues<ReturnType<typeof scheduleOptions>>,
): Record<string, unknown> {
  const given = scheduleKinds.flatMap((kind) => {
    const expr = options[kind];
    return expr === undefined ? [] : [{ schedule_kind: kind, schedule_expr: expr }];
  });
  if (given.length > 1) {
    throw usageError('a task has one schedule: --cron, --rrule, --once or --event');
  }
  return { ...given[0], ...(options.zone === undefined ? {} : { timezone: options.zone }) };
}

function parseSetting(setting: string): [string, unknown] {
  const [, field, value] = /^([a-z_]+)=(.*)$/s.exec(setting) ?? [];
  if (field !== undefined && value !== undefined)
    return [field, parseValue(value, `--set ${field}`)];
  throw usageError(`--set ${setting}: must be field=value`);
}
