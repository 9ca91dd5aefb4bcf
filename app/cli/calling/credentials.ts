import { readFileSync } from 'node:fs';
import type { ClientOptions, Credentials } from '../../../api/client/client.ts';
import { settingOf, type Environment } from '../../configuration/setting-readers.ts';
import { credentialsFile } from '../../starting/credentials-file.ts';
import { CommandError, exitCodes, messageOf, usageError } from './command-errors.ts';

/**
 * The caller's token or credentials, the first of: `SVC_TOKEN`; `SVC_AGENT_ID` with `SVC_AGENT_SECRET`; the first admin's
 * credentials in the data directory. Credentials are read when they are needed.
 * @throws CommandError for a malformed token
 */
export function clientAccess(env: Environment): Pick<ClientOptions, 'token' | 'credentials'> {
  const token = settingOf(env, 'SVC_TOKEN');
  if (token === undefined) return { credentials: () => credentialsOf(env) };
  // No header can carry other characters, and the failure would look like an unavailable service.
  if (/^[\x21-\x7e]+$/.test(token)) return { token };
  const why = 'it has a character that no token has, such as a space or a line break';
  throw new CommandError(exitCodes.notAuthorized, `SVC_TOKEN is not a token: ${why}`);
}

/** @throws CommandError that names the settings to set */
function credentialsOf(env: Environment): Credentials {
  const agentId = settingOf(env, 'SVC_AGENT_ID');
  const agentSecret = settingOf(env, 'SVC_AGENT_SECRET');
  if (agentId !== undefined && agentSecret !== undefined) return { agentId, agentSecret };
  if (agentId !== undefined || agentSecret !== undefined) {
    const missing = agentId === undefined ? 'SVC_AGENT_ID' : 'SVC_AGENT_SECRET';
    throw usageError(`${missing} is not set; SVC_AGENT_ID and SVC_AGENT_SECRET belong together`);
  }
  const file = credentialsFile(dataDirectoryOf(env));
  try {
    const { agent_id, agent_secret } = JSON.parse(readFileSync(file, 'utf8')) as {
      readonly agent_id: string;
      readonly agent_secret: string;
    };
    return { agentId: agent_id, agentSecret: agent_secret };
  } catch (error) {
    const message =
      (error as NodeJS.ErrnoException).code === 'ENOENT'
        ? `no credentials: set SVC_TOKEN, or SVC_AGENT_ID and SVC_AGENT_SECRET (${file} is missing too)`
        : `${file} can't be read: ${messageOf(error)}`;
    throw new CommandError(exitCodes.notAuthorized, message, error);
  }
}

/** `SVC_DATA_DIR`, or `./data`. */
export function dataDirectoryOf(env: Environment): string {
  return settingOf(env, 'SVC_DATA_DIR') ?? './data';
}
