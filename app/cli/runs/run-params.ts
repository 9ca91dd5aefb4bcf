import { setOwn } from '../../../domain/pipeline/set-own.ts';
import type { CliEnvironment } from '../calling/cli-environment.ts';
import { usageError } from '../calling/command-errors.ts';
import { repeatable, text, type DeclaredOptions, type OptionValues } from '../options.ts';
import { parseValue, readObject } from '../terminal/values.ts';

/** The options that override default params of the task. */
export const paramOptions = {
  param: repeatable('key=value', 'override a default param of the task; JSON or a string'),
  params: text('json', 'override several params, as JSON or @file'),
} satisfies DeclaredOptions;

/**
 * The given params; each `--param` overrides `--params`.
 * @returns undefined if none is given
 * @throws CommandError for an unreadable `--params`, or a `--param` without `=`
 */
export async function paramsOf(
  { param = [], params }: OptionValues<typeof paramOptions>,
  source: Pick<CliEnvironment, 'input'>,
): Promise<Record<string, unknown> | undefined> {
  if (params === undefined && param.length === 0) return undefined;
  const given: Record<string, unknown> =
    params === undefined ? {} : { ...(await readObject(params, '--params', source)) };
  for (const each of param) {
    const at = each.indexOf('=');
    if (at < 1) throw usageError(`--param ${each}: must be key=value`);
    const key = each.slice(0, at);
    setOwn(given, key, parseValue(each.slice(at + 1), `--param ${key}`));
  }
  return given;
}
