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
import type { DomainEvent } from '../../domain/events/catalogue.ts';
import type { Clock, Instant } from '../../domain/clock.ts';
import { isConflict, type EventStore } from '../../domain/event-store.ts';
import { load, toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { DEFAULT_NAMESPACE } from '../../domain/namespaces/namespace.ts';
import { streams } from '../../domain/streams.ts';
import { makeFolder } from '../../stores/folder.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { credentialsFile } from './credentials-file.ts';

const ADMIN_NAME = 'admin';
const DRAFT_SUFFIX = '.draft.json';
/** Milliseconds after which another process's draft is abandoned. */
const MAX_DRAFT_AGE = 60_000;

/** The first admin's credentials, printed once and saved in the data directory. */
export interface AdminCredentials {
  readonly agent_id: string;
  readonly agent_secret: string;
}

/**
 * Registers the agent `admin` with a secret on an empty store. The reservation of its name decides between concurrent
 * processes. The credentials are on disk before the append, so that a crash in between leaves no admin with an unknown
 * secret.
 *
 * Returns the credentials if this process saved them, otherwise null.
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
  const nameStream = streams.agentName(DEFAULT_NAMESPACE, ADMIN_NAME);
  const name = await load(store, nameStream, agentNameFold);
  if (name.revision !== 'none' && name.state === null) return null;
  const agentId = name.state?.agent_id ?? adminId ?? newId(now);
  const agentStream = streams.agent(agentId);
  const agent = await load(store, agentStream, agentFold);
  if (agent.state.status !== 'none') {
    const known = agent.state.status === 'registered' ? agent.state.credentials : null;
    return known === null ? null : finishDrafts(dataDirectory, agentId, known.secret_hash, now);
  }
  const reservation = reserveName(null, ADMIN_NAME, agentId);
  if (name.state === null && !(await appendFirst(store, nameStream, reservation, context))) {
    // Another process reserved the name. That process can die before it continues, so this process continues too.
    return makeFirstAdmin(store, configuration, clock);
  }
  const secret = adminSecret ?? newSecret();
  const credentials = { agent_id: agentId, agent_secret: secret };
  makeFolder(dataDirectory);
  const draft = join(dataDirectory, `admin-credentials.${newId(now)}${DRAFT_SUFFIX}`);
  writeFileSync(draft, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600, flush: true });
  const fields = { name: ADMIN_NAME, scopes: ['admin'], webhook_url: null };
  const registration = registerAgent(agent.state, fields, await hashSecret(secret));
  if (await appendFirst(store, agentStream, registration, context)) {
    return finish(dataDirectory, draft) ? credentials : null;
  }
  rmSync(draft, { force: true });
  return null;
}

/** Appends to an empty stream. Returns false if another process was first. */
async function appendFirst(
  store: EventStore,
  stream: string,
  events: readonly DomainEvent[],
  context: CommandContext,
): Promise<boolean> {
  try {
    await store.append(stream, toNewEvents(stream, events, context), 'none');
    return true;
  } catch (error) {
    if (isConflict(error)) return false;
    throw error;
  }
}

/** Gives a draft its final name. Returns false if another process has done so. */
function finish(directory: string, draft: string): boolean {
  return unlessGone(() => renameSync(draft, credentialsFile(directory))) !== GONE;
}

/** Null for a draft that is incomplete or gone. */
function readDraft(path: string): AdminCredentials | null {
  try {
    const content = unlessGone(() => readFileSync(path, 'utf8'));
    return content === GONE ? null : (JSON.parse(content) as AdminCredentials);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

const GONE = Symbol('the file is gone');

function unlessGone<T>(work: () => T): T | typeof GONE {
  try {
    return work();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return GONE;
    throw error;
  }
}

/**
 * Completes the start of a process that died between the append and the final name: the draft with the right secret gets
 * that name. Old drafts are removed; the process of a new one can be about to append. Processes can do this
 * concurrently.
 *
 * Returns the credentials that this call saved; null for none.
 */
async function finishDrafts(
  directory: string,
  agentId: string,
  hash: string,
  now: Instant,
): Promise<AdminCredentials | null> {
  if (!existsSync(directory)) return null;
  let finished: AdminCredentials | null = null;
  for (const name of readdirSync(directory).filter((file) => file.endsWith(DRAFT_SUFFIX))) {
    const draft = join(directory, name);
    const credentials = readDraft(draft);
    const isOfAgent = credentials?.agent_id === agentId;
    if (isOfAgent && (await verifySecret(credentials.agent_secret, hash))) {
      if (finish(directory, draft)) finished = credentials;
      continue;
    }
    const stat = unlessGone(() => statSync(draft));
    if (stat !== GONE && now - stat.mtimeMs > MAX_DRAFT_AGE) rmSync(draft, { force: true });
  }
  return finished;
}
