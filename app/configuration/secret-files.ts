import { readFileSync } from 'node:fs';
import { ConfigurationError, shown, textOf, type Environment } from './setting-readers.ts';

/** Settings whose values are secrets. Each is also accepted as the path of a file, under its name with `_FILE`. */
export const secretSettings = [
  'JWT_SECRET_KEY',
  'JWT_PREVIOUS_SECRET_KEY',
  'SVC_ADMIN_SECRET',
  'SVC_WEBHOOK_KEY',
  'SVC_EVENT_STORE_URL',
  'SVC_READ_MODEL_URL',
  'SVC_TOKEN',
  'SVC_AGENT_SECRET',
] as const;

/** The names under which those settings name a file. */
export const secretFileSettings = secretSettings.map((name) => `${name}_FILE`);

/**
 * The environment with every `<NAME>_FILE` of a secret setting replaced by `<NAME>`, read from that file. One trailing
 * line break is not part of the value.
 *
 * @throws ConfigurationError when both are set, or when the file cannot be read or is empty
 */
export function withSecretFiles(env: Environment): Environment {
  const read: Record<string, string> = {};
  for (const name of secretSettings) {
    const file = `${name}_FILE`;
    const path = textOf(env, file);
    if (path === undefined) continue;
    if (textOf(env, name) !== undefined) {
      throw new ConfigurationError(file, `is set together with ${name}; set only one of them`);
    }
    read[name] = contentOf(file, path);
  }
  const named = Object.entries(env).filter(([name]) => !secretFileSettings.includes(name));
  return { ...Object.fromEntries(named), ...read };
}

/**
 * The value of `${secrets.NAME}`: `SVC_SECRET_NAME`, or the content of the file that `SVC_SECRET_NAME_FILE` names. The
 * file is read at each call, so that a changed secret takes effect without a restart.
 *
 * @returns undefined when neither is set
 * @throws ConfigurationError when the file cannot be read or is empty
 */
export function pipelineSecret(env: Environment, name: string): string | undefined {
  const variable = `SVC_SECRET_${name}`;
  const value = env[variable];
  if (value !== undefined) return value;
  const path = textOf(env, `${variable}_FILE`);
  return path === undefined ? undefined : contentOf(`${variable}_FILE`, path);
}

function contentOf(variable: string, path: string): string {
  let content;
  try {
    content = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    const fault = `names ${shown(path)}, which cannot be read (${code}); it must be a readable file`;
    throw new ConfigurationError(variable, fault);
  }
  if (content === '') {
    throw new ConfigurationError(variable, `names ${shown(path)}, which is empty`);
  }
  return content;
}
