import { disableAgentCommand, enableAgentCommand } from '../../domain/agents/agent-disabling.ts';
import { requireAgent, type AgentState } from '../../domain/agents/agent.ts';
import type { Handled } from '../../domain/handle.ts';
import { agentsProjection } from '../../projections/views/agents.ts';
import { Agent } from '../schemas/response-schemas-agents.ts';
import { endpoint, etag, type Endpoint, type EndpointResponse } from '../endpoint.ts';
import { HttpError } from '../errors.ts';
import { DisableQuery, EnableQuery } from '../schemas/schemas.ts';
import { reachedAgent, administrators } from './agent-reach.ts';
import { adminsIn } from './agent-removal.ts';
import { showAgent } from './agent-records.ts';

function changed(id: string, { state, revision, position }: Handled<AgentState>): EndpointResponse {
  return { body: showAgent(id, requireAgent(state)), headers: etag(revision), position };
}

const disable = endpoint('POST /agents/:agent_id/disable', {
  operationId: 'disableAgent',
  summary: 'Disables an agent: it can do nothing until it is enabled',
  description:
    'Its tokens, keys and live streams stop working within a second. Its sessions end, its tasks do not fire, ' +
    'and its workers get no jobs. `runs` says what happens to its runs.',
  scopes: administrators,
  query: DisableQuery,
  reads: [agentsProjection],
  responses: { 200: Agent },
  responseHeaders: ['ETag'],
  async handle(call) {
    const { dependencies, context, query } = call;
    const { store, agents } = dependencies;
    const { id, isCaller } = await reachedAgent(call);
    const details = { agent_id: id };
    if (isCaller) throw new HttpError('conflict', 'an agent cannot disable itself', details);
    const others = () => adminsIn(call);
    const { runs } = query;
    const handled = await disableAgentCommand({ store, agentId: id, runs, others, context });
    agents.learn(id, handled);
    return changed(id, handled);
  },
});

const enable = endpoint('POST /agents/:agent_id/enable', {
  operationId: 'enableAgent',
  summary: 'Enables a disabled agent',
  description:
    'It must sign in again, because its earlier sessions have ended. Its API keys work again. `missed` says what happens to ' +
    'fires of its tasks that came due in the meantime.',
  scopes: administrators,
  query: EnableQuery,
  responses: { 200: Agent },
  responseHeaders: ['ETag'],
  async handle(call) {
    const { dependencies, context, query } = call;
    const { store, agents } = dependencies;
    const { id } = await reachedAgent(call);
    const handled = await enableAgentCommand(store, id, query.missed, context);
    agents.learn(id, handled);
    return changed(id, handled);
  },
});

export const agentDisablingEndpoints: readonly Endpoint[] = [disable, enable];
