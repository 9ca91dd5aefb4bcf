import { readFileSync } from 'node:fs';
import { isSecretName } from './secret-settings.ts';
import { ConfigurationError, quoted, settingOf, type Environment } from './setting-readers.ts';

/** Secret settings. `<NAME>_FILE` can name a file with the value instead. */
export const secretSettings = [
  'JWT_SECRET_KEY',
  'JWT_PREVIOUS_SECRET_KEY',
  'SVC_ADMIN_SECRET',
  'SVC_OIDC_CLIENT_SECRET',
  'SVC_WEBHOOK_KEY',
  'SVC_SECRETS_KEY',
  'SVC_ARTIFACTS_S3_SECRET',
  'SVC_EVENT_STORE_URL',
  'SVC_READ_MODEL_URL',
  'SVC_TOKEN',
  'SVC_AGENT_SECRET',
] as const;

/** The variables that name such files. */
export const secretFileSettings = secretSettings.map((name) => `${name}_FILE`);

/**
 * The environment with each secret's `<NAME>_FILE` replaced by `<NAME>` from that file, without a final line break.
 * @throws ConfigurationError if both are set, or if the file cannot be read or is empty
 */
export function withSecretFiles(env: Environment): Environment {
  const read: Record<string, string> = {};
  for (const name of secretSettings) {
    const file = `${name}_FILE`;
    const path = settingOf(env, file);
    if (path === undefined) continue;
    if (settingOf(env, name) !== undefined) {
      throw new ConfigurationError(file, `is set together with ${name}; set only one of them`);
    }
    read[name] = contentOf(file, path);
  }
  const named = Object.entries(env).filter(([name]) => !secretFileSettings.includes(name));
  return { ...Object.fromEntries(named), ...read };
}

/**
 * A secret of the environment: `SVC_SECRET_NAME`, or the content of the file in `SVC_SECRET_NAME_FILE`; undefined if
 * neither is set. The file is read at each call, so a changed secret needs no restart.
 * @throws ConfigurationError if the file cannot be read or is empty
 */
export function pipelineSecret(env: Environment, name: string): string | undefined {
  if (!isSecretName(name)) return undefined;
  const variable = `SVC_SECRET_${name}`;
  const value = env[variable];
  if (value !== undefined) return value;
  const path = settingOf(env, `${variable}_FILE`);
  return path === undefined ? undefined : contentOf(`${variable}_FILE`, path);
}

function contentOf(variable: string, path: string): string {
  let content;
  try {
    content = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    const fault = `names ${quoted(path)}, which cannot be read (${code}); it must be a readable file`;
    throw new ConfigurationError(variable, fault);
  }
  if (content === '') {
    throw new ConfigurationError(variable, `names ${quoted(path)}, which is empty`);
  }
  return content;
}
