import { agentFold, type RegisteredAgent } from '../../domain/agents/agent.ts';
import { load } from '../../domain/handle.ts';
import { streams } from '../../domain/streams.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { verifyNobody, verifySecret } from './secrets.ts';

/**
 * The agent, when the secret is right; null when not, which takes as long for every way of being wrong.
 * @param secret undefined: none was given, which is right only where `SVC_ALLOW_SECRETLESS` says so
 * @param who asks, such as the network of an address: the others' turns come in between
 * @throws TooManyWaiting
 */
export async function agentBySecret(
  { store, settings }: Pick<ApiDependencies, 'store' | 'settings'>,
  agentId: string,
  secret: string | undefined,
  who: string,
): Promise<RegisteredAgent | null> {
  // From the log itself: a secret counts from the moment that it was given, in every process.
  const { state } = await load(store, streams.agent(agentId), agentFold);
  if (state.status !== 'registered') return (await verifyNobody(secret ?? '', who)) || null;
  if (state.credentials === null) {
    const allowed = settings.allowSecretless && secret === undefined;
    if (!allowed) await verifyNobody(secret ?? '', who);
    return allowed ? state : null;
  }
  return (await verifySecret(secret ?? '', state.credentials.secret_hash, who)) ? state : null;
}
