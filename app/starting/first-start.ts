import {
  existsSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { hashSecret, newSecret, verifySecret } from '../../api/access/secrets.ts';
import { agentFold, agentNameFold, registerAgent, reserveName } from '../../domain/agents/agent.ts';
import type { Clock, Instant } from '../../domain/clock.ts';
import { isConflict, type EventStore } from '../../domain/event-store.ts';
import { load, toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { streams } from '../../domain/streams.ts';
import { makeFolder } from '../../stores/folder.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { credentialsFile } from './credentials-file.ts';

const NAME = 'admin';
const DRAFT = '.draft.json';
/** Milliseconds. */
const DRAFT_LIFE = 60_000;

/** The first admin's credentials, as they are printed once and kept in the data directory. */
export interface AdminCredentials {
  readonly agent_id: string;
  readonly agent_secret: string;
}

/**
 * On an empty store, registers the agent `admin` with a secret: both in one append, behind the reservation of its
 * name, which decides between processes that start at once. The credentials are on disk before the append, so
 * that a crash in between never leaves an admin whose secret nobody knows.
 *
 * @returns the credentials when this process has put them where they are kept, else null
 */
export async function makeFirstAdmin(
  store: EventStore,
  configuration: Configuration,
  clock: Clock,
): Promise<AdminCredentials | null> {
  const { dataDirectory, adminId, adminSecret } = configuration;
  const now = clock.now();
  const context: CommandContext = {
    commandId: newId(now),
    actor: 'service',
    source: 'first start',
    correlationId: newId(now),
    now,
  };
  const nameStream = streams.agentName(NAME);
  const name = await load(store, nameStream, agentNameFold);
  if (name.revision !== 'none' && name.state === null) return null;
  const agentId = name.state?.agent_id ?? adminId ?? newId(now);
  const agentStream = streams.agent(agentId);
  const agent = await load(store, agentStream, agentFold);
  if (agent.state.status !== 'none') {
    const known = agent.state.status === 'registered' ? agent.state.credentials : null;
    return known === null ? null : finishDrafts(dataDirectory, agentId, known.secret_hash, now);
  }
  // Another process has just reserved it. It may die before it goes on, so this one goes on for it.
  if (name.state === null && !(await reserved(store, nameStream, agentId, context))) {
    return makeFirstAdmin(store, configuration, clock);
  }
  const secret = adminSecret ?? newSecret();
  const credentials = { agent_id: agentId, agent_secret: secret };
  makeFolder(dataDirectory);
  const draft = join(dataDirectory, `admin-credentials.${newId(now)}${DRAFT}`);
  writeFileSync(draft, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600, flush: true });
  const fields = { name: NAME, scopes: ['admin'], webhook_url: null };
  const events = registerAgent(agent.state, fields, await hashSecret(secret));
  try {
    await store.append(agentStream, toNewEvents(agentStream, events, context), 'none');
  } catch (error) {
    if (!isConflict(error)) throw error;
    rmSync(draft, { force: true });
    return null; // another process was faster
  }
  return finish(dataDirectory, draft) ? credentials : null;
}

async function reserved(
  store: EventStore,
  stream: string,
  agentId: string,
  context: CommandContext,
): Promise<boolean> {
  try {
    const events = reserveName(null, NAME, agentId);
    await store.append(stream, toNewEvents(stream, events, context), 'none');
    return true;
  } catch (error) {
    if (isConflict(error)) return false;
    throw error;
  }
}

/** Gives a draft its last name. @returns false where another process has done so: that may be as soon as it is in the log */
function finish(directory: string, draft: string): boolean {
  return unlessGone(() => renameSync(draft, credentialsFile(directory))) !== GONE;
}

/** null for a file that its process did not finish writing, and for one that is gone. */
function readDraft(path: string): AdminCredentials | null {
  try {
    const text = unlessGone(() => readFileSync(path, 'utf8'));
    return text === GONE ? null : (JSON.parse(text) as AdminCredentials);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

const GONE = Symbol('the file is gone');

function unlessGone<T>(act: () => T): T | typeof GONE {
  try {
    return act();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return GONE;
    throw error;
  }
}

/**
 * A process died between the append and giving the file its last name: of the drafts that lie about, the one with
 * the right secret is it. Others are left for a while, as their process may be about to append. Several processes may be
 * at it at once.
 *
 * @returns the credentials that it has given their place; null for none
 */
async function finishDrafts(
  directory: string,
  agentId: string,
  hash: string,
  now: Instant,
): Promise<AdminCredentials | null> {
  if (!existsSync(directory)) return null;
  let finished: AdminCredentials | null = null;
  for (const name of readdirSync(directory).filter((file) => file.endsWith(DRAFT))) {
    const draft = join(directory, name);
    const credentials = readDraft(draft);
    const right = credentials?.agent_id === agentId;
    if (right && (await verifySecret(credentials.agent_secret, hash))) {
      if (finish(directory, draft)) finished = credentials;
      continue;
    }
    const stat = unlessGone(() => statSync(draft));
    if (stat !== GONE && now - stat.mtimeMs > DRAFT_LIFE) rmSync(draft, { force: true });
  }
  return finished;
}
