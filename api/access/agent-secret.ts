import { agentFold, type RegisteredAgent } from '../../domain/agents/agent.ts';
import { load } from '../../domain/handle.ts';
import { streams } from '../../domain/streams.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { verifyNobody, verifySecret } from './secrets.ts';

/**
 * The agent if the secret is right, otherwise null. All failures take the same time.
 * @param secret undefined: none was given, which `SVC_ALLOW_SECRETLESS` allows to agents without one
 * @param caller identifies the caller, such as by the network of its address; callers take turns
 * @throws TooManyWaitingError
 */
export async function agentBySecret(
  { store, settings }: Pick<ApiDependencies, 'store' | 'settings'>,
  agentId: string,
  secret: string | undefined,
  caller: string,
): Promise<RegisteredAgent | null> {
  // Read from the log, so a new secret is valid at once in every process.
  const { state } = await load(store, streams.agent(agentId), agentFold);
  if (state.status !== 'registered') return (await verifyNobody(secret ?? '', caller)) || null;
  if (state.credentials === null) {
    const allowed = settings.allowSecretless && secret === undefined;
    if (!allowed) await verifyNobody(secret ?? '', caller);
    return allowed ? state : null;
  }
  return (await verifySecret(secret ?? '', state.credentials.secret_hash, caller)) ? state : null;
}
