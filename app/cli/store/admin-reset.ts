import { existsSync, writeFileSync } from 'node:fs';
import { hashSecret, newSecret } from '../../../api/access/secrets.ts';
import { agentFold, agentNameFold, setCredentials } from '../../../domain/agents/agent.ts';
import type { EventStore } from '../../../domain/event-store.ts';
import { handle, load } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { DEFAULT_NAMESPACE } from '../../../domain/namespaces/namespace.ts';
import { streams } from '../../../domain/streams.ts';
import { credentialsFile } from '../../starting/credentials-file.ts';
import { CommandError, exitCodes, messageOf, type ExitCode } from '../calling/command-errors.ts';
import { storeSettings, withStores } from '../calling/open-stores.ts';
import type { Session } from '../calling/session.ts';

const ADMIN_NAME = 'admin';

/**
 * Sets a new secret for the first admin or another admin, directly in the store, and ends its sessions. The secret is
 * printed even if it cannot be saved, because the old one no longer works. Returns the exit code.
 * @throws CommandError if there is no such agent
 */
export async function resetAdmin(
  session: Session,
  options: { readonly agent: string | undefined; readonly dataDir: string | undefined },
): Promise<ExitCode> {
  const settings = storeSettings(session.environment.env, options.dataDir);
  const { clock, reason } = session;
  const agent_secret = newSecret();
  const agent_id = await withStores(settings, async ({ store }) => {
    const id = options.agent ?? (await adminId(store));
    const hash = await hashSecret(agent_secret);
    const now = clock.now();
    const commandId = newId(now);
    await handle({
      store,
      stream: streams.agent(id),
      fold: agentFold,
      admit: (state) => {
        if (state.status !== 'registered') throw notFound(`there is no agent ${id}`);
        if (state.scopes.includes('admin')) return;
        throw new CommandError(exitCodes.conflict, `agent ${id} lacks the scope admin`);
      },
      decide: (state) => setCredentials(state, hash),
      context: {
        commandId,
        correlationId: commandId,
        now,
        reason,
        actor: 'service',
        source: 'svc admin reset',
      },
    });
    return id;
  });
  const credentials = { agent_id, agent_secret };
  const { file, error } = save(settings.dataDirectory, credentials);
  const saved = file === null ? ':' : `, saved in\n${file}:`;
  session.answer(credentials, () =>
    [
      `The admin has a new secret, shown once${saved}`,
      '',
      `  id      ${agent_id}`,
      `  secret  ${agent_secret}`,
    ].join('\n'),
  );
  if (error === null) return exitCodes.ok;
  const path = credentialsFile(settings.dataDirectory);
  session.aside(`svc: the secret could not be saved in ${path}: ${error}`);
  return exitCodes.failure;
}

async function adminId(store: EventStore): Promise<string> {
  const { state } = await load(
    store,
    streams.agentName(DEFAULT_NAMESPACE, ADMIN_NAME),
    agentNameFold,
  );
  if (state !== null) return state.agent_id;
  throw notFound(`no agent is named ${ADMIN_NAME}; give another admin's id with --agent`);
}

const notFound = (message: string): CommandError => new CommandError(exitCodes.notFound, message);

/** Saves the credentials; without a data directory (the stores are servers) they are only printed. */
function save(
  directory: string,
  credentials: object,
): { readonly file: string | null; readonly error: string | null } {
  if (!existsSync(directory)) return { file: null, error: null };
  const file = credentialsFile(directory);
  try {
    // An existing file keeps its mode, and so its readers.
    const content = `${JSON.stringify(credentials, null, 2)}\n`;
    writeFileSync(file, content, { mode: 0o600, flush: true });
    return { file, error: null };
  } catch (error) {
    return { file: null, error: messageOf(error) };
  }
}
