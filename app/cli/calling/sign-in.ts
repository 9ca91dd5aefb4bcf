import { readFileSync } from 'node:fs';
import type { ClientOptions } from '../../../api/client/client.ts';
import { textOf, type Environment } from '../../configuration/setting-readers.ts';
import { credentialsFile } from '../../starting/credentials-file.ts';
import { CommandFault, exitCodes, usageFault } from './faults.ts';

/** An agent's id and secret, and where they come from. */
export interface Credentials {
  readonly agent_id: string;
  readonly agent_secret: string;
  /** For messages. */
  readonly from: string;
}

/**
 * By whom to call, the first of: `SVC_TOKEN`; `SVC_AGENT_ID` with `SVC_AGENT_SECRET`; the first admin's credentials
 * in the data directory of a service on this machine. They are looked for when they are needed.
 * @throws CommandFault for a token that can't be one
 */
export function accessOf(env: Environment): Pick<ClientOptions, 'token' | 'credentials'> {
  const token = textOf(env, 'SVC_TOKEN');
  if (token !== undefined) {
    // No header could carry it: the call would fail as if nobody had answered.
    if (!/^[\x21-\x7e]+$/.test(token)) {
      const why = 'it has a character that no token has, such as a space or a line break';
      throw new CommandFault(exitCodes.notAuthorized, `SVC_TOKEN is not a token: ${why}`);
    }
    return { token };
  }
  const credentials = () => {
    const { agent_id: agentId, agent_secret: agentSecret } = credentialsOf(env);
    return { agentId, agentSecret };
  };
  return { credentials };
}

/** @throws CommandFault that says what can be set, where nothing is */
function credentialsOf(env: Environment): Credentials {
  const agent_id = textOf(env, 'SVC_AGENT_ID');
  const agent_secret = textOf(env, 'SVC_AGENT_SECRET');
  if (agent_id !== undefined && agent_secret !== undefined) {
    return { agent_id, agent_secret, from: 'SVC_AGENT_ID and SVC_AGENT_SECRET' };
  }
  if (agent_id !== undefined || agent_secret !== undefined) {
    const missing = agent_id === undefined ? 'SVC_AGENT_ID' : 'SVC_AGENT_SECRET';
    throw usageFault(`${missing} is not set; SVC_AGENT_ID and SVC_AGENT_SECRET belong together`);
  }
  const file = credentialsFile(dataDirectoryOf(env));
  try {
    const kept = JSON.parse(readFileSync(file, 'utf8')) as Omit<Credentials, 'from'>;
    return { agent_id: kept.agent_id, agent_secret: kept.agent_secret, from: file };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      const why = error instanceof Error ? error.message : String(error);
      throw new CommandFault(exitCodes.notAuthorized, `${file} can't be read: ${why}`, error);
    }
    throw new CommandFault(
      exitCodes.notAuthorized,
      `by whom? Set SVC_TOKEN, or SVC_AGENT_ID and SVC_AGENT_SECRET ` +
        `(there are no credentials of a first start in ${file} either)`,
    );
  }
}

/** `SVC_DATA_DIR`, or `./data`. */
export function dataDirectoryOf(env: Environment): string {
  return textOf(env, 'SVC_DATA_DIR') ?? './data';
}
