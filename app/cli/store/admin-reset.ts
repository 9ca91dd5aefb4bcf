import { existsSync, writeFileSync } from 'node:fs';
import { hashSecret, newSecret } from '../../../api/access/secrets.ts';
import { agentFold, agentNameFold, setCredentials } from '../../../domain/agents/agent.ts';
import type { EventStore } from '../../../domain/event-store.ts';
import { handle, load } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import { credentialsFile } from '../../starting/credentials-file.ts';
import type { ResetOptions } from './admin-command.ts';
import { CommandFault, exitCodes, type ExitCode } from '../calling/faults.ts';
import { onStore, storeSettings } from '../calling/on-store.ts';
import type { Session } from '../calling/session.ts';

const NAME = 'admin';

/**
 * A new secret for the first admin, or for another agent with its scope, past the interface; ends its sessions. It is
 * told also where it can't be kept: the old one counts no longer, and nobody would know the new one.
 *
 * @returns what the process ends with
 * @throws CommandFault where there is no such agent
 */
export async function resetAdmin(session: Session, options: ResetOptions): Promise<ExitCode> {
  const settings = storeSettings(session.surroundings.env, options.dataDir);
  const { clock } = session;
  const agent_secret = newSecret();
  const agent_id = await onStore(settings, async ({ store }) => {
    const id = options.agent ?? (await adminId(store));
    const hash = await hashSecret(agent_secret);
    const now = clock.now();
    const stream = streams.agent(id);
    const commandId = newId(now);
    await handle({
      store,
      stream,
      fold: agentFold,
      admit: (state) => {
        if (state.status !== 'registered') throw notFound(`there is no agent ${id}`);
        if (state.scopes.includes('admin')) return;
        throw new CommandFault(exitCodes.conflict, `the agent ${id} has not the scope admin`);
      },
      decide: (state) => setCredentials(state, hash),
      context: {
        commandId,
        actor: 'service',
        source: 'svc admin reset',
        correlationId: commandId,
        reason: session.reason,
        now,
      },
    });
    return id;
  });
  const credentials = { agent_id, agent_secret };
  const { file, fault } = keep(settings.dataDirectory, credentials);
  session.answer(credentials, () =>
    [
      'The admin has a new secret; this is shown once' + (file ? `, and kept in\n${file}:` : ':'),
      '',
      `  id      ${agent_id}`,
      `  secret  ${agent_secret}`,
    ].join('\n'),
  );
  if (fault === null) return exitCodes.ok;
  session.aside(
    `svc: the secret can't be kept in ${credentialsFile(settings.dataDirectory)}: ${fault}`,
  );
  return exitCodes.failure;
}

async function adminId(store: EventStore): Promise<string> {
  const { state } = await load(store, streams.agentName(NAME), agentNameFold);
  if (state !== null) return state.agent_id;
  throw notFound(`no agent is named ${NAME}; --agent takes the id of another`);
}

const notFound = (message: string): CommandFault => new CommandFault(exitCodes.notFound, message);

/** Where a secret is kept; null where it is not, with what is wrong where it should have been. */
interface Keeping {
  readonly file: string | null;
  readonly fault: string | null;
}

/** Where there is no data directory (the stores are servers), the terminal alone has it. */
function keep(directory: string, credentials: object): Keeping {
  if (!existsSync(directory)) return { file: null, fault: null };
  const file = credentialsFile(directory);
  const text = `${JSON.stringify(credentials, null, 2)}\n`;
  try {
    // Whoever may read the old file may read the new one, and nobody else: the mode stays.
    writeFileSync(file, text, { mode: 0o600, flush: true });
    return { file, fault: null };
  } catch (error) {
    return { file: null, fault: error instanceof Error ? error.message : String(error) };
  }
}
