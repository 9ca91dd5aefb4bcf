import type * as Agents from '../schemas/response-schemas-agents.ts';
import type * as Audit from '../schemas/response-schemas-audit.ts';
import type * as Looked from '../schemas/audit-schemas.ts';
import type { ExpiringKeyPage, ExpiringQuery } from '../schemas/expiring-key-schemas.ts';
import type * as Requests from '../schemas/schemas.ts';
import type { Api, ReadAsOf } from './client.ts';
import type { CallOptions } from './client-connection.ts';

/** Registers, changes and stops agents. */
export const agents = ({ read, readOne, send, sendTo, actWith }: Api) => {
  const setCredentials = sendTo<Agents.Credentials, Requests.SetCredentials>(
    'POST',
    '/agents/:id/credentials',
  );
  return {
    create: send<Agents.Agent, Requests.CreateAgent>('POST', '/agents'),
    list: read<Agents.AgentList, Requests.AgentQuery>('/agents'),
    get: readOne<Agents.Agent, ReadAsOf>('/agents/:id'),
    update: sendTo<Agents.Agent, Requests.UpdateAgent>('PUT', '/agents/:id'),
    remove: actWith<Agents.AgentRemoved, Requests.RemoveAgentQuery>('DELETE', '/agents/:id'),
    setCredentials: (id: string, body: Requests.SetCredentials = {}, call: CallOptions = {}) =>
      setCredentials(id, body, call),
    disable: actWith<Agents.Agent, Requests.DisableQuery>('POST', '/agents/:id/disable'),
    enable: actWith<Agents.Agent, Requests.EnableQuery>('POST', '/agents/:id/enable'),
    history: readOne<Audit.History, Looked.HistoryQuery>('/agents/:id/history'),
  };
};

/** API keys of agents. */
export const keys = ({ read, readOne, sendTo, removePart }: Api) => ({
  /** Only this response contains the key itself. */
  create: sendTo<Agents.NewApiKey, Requests.CreateApiKey>('POST', '/agents/:id/keys'),
  list: readOne<Agents.ApiKeyList>('/agents/:id/keys'),
  expiring: read<ExpiringKeyPage, ExpiringQuery>('/agents/keys'),
  revoke: removePart<Agents.ApiKeyRevoked>('/agents/:id/keys/:key'),
});
