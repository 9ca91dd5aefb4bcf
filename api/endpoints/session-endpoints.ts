import type { RegisteredAgent } from '../../domain/agents/agent.ts';
import { toIso } from '../../domain/clock.ts';
import { isFromOtherOrigin } from '../access/page-cookie.ts';
import { beginPageSession, endPageSession, noSession } from '../access/page-sessions.ts';
import { signIn } from '../access/token-pairs.ts';
import { endpoint, success, type Call, type Endpoint } from '../endpoint.ts';
import { forbidden } from '../errors.ts';
import { PageSession, Revoked } from '../schemas/response-schemas-agents.ts';
import { TokenRequest } from '../schemas/schemas.ts';

const PATH = '/auth/session';

const begin = endpoint(`POST ${PATH}`, {
  operationId: 'beginPageSession',
  summary: 'Signs in at the web page with an id and a secret',
  description:
    'The response sets a cookie that no script can read. In requests of the page itself, the cookie replaces a token.',
  scopes: null,
  body: TokenRequest,
  responses: { 200: PageSession },
  refusals: ['unauthorized', 'forbidden'],
  async handle(call) {
    requireOwnPage(call);
    const agentId = call.body.agent_id.toLowerCase();
    const agent = await signIn(call, agentId, call.body.agent_secret);
    const { cookie, expiresAt, position } = await beginPageSession(call, agentId, agent);
    const body = shown(call, { ...agent, agentId, expiresAt });
    return { body, position, cookies: [cookie] };
  },
});

const show = endpoint(`GET ${PATH}`, {
  operationId: 'getPageSession',
  summary: 'Shows who is signed in, and how people can sign in',
  description: 'Without a session, `agent` is null.',
  scopes: null,
  responses: { 200: PageSession },
  async handle(call) {
    const caller = await call.identify();
    if (caller === null) return { body: shown(call, null) };
    const { expiresAt } = caller;
    const ends = Number.isFinite(expiresAt) ? toIso(expiresAt) : null;
    return { body: shown(call, { ...caller, expiresAt: ends }) };
  },
});

const end = endpoint(`DELETE ${PATH}`, {
  operationId: 'endPageSession',
  summary: "Signs out: ends the caller's session, and removes the cookie",
  scopes: null,
  responses: { 200: Revoked },
  refusals: ['forbidden'],
  async handle(call) {
    requireOwnPage(call);
    const caller = await call.identify();
    const sid = caller?.sessionId ?? null;
    const position = caller && sid ? await endPageSession(call, sid, caller) : null;
    const ended = success('signed out', {}, position);
    return { ...ended, cookies: [noSession(call.base())] };
  },
});

export const sessionEndpoints: readonly Endpoint[] = [begin, show, end];

/** No other site may sign people in, or out. @throws HttpError 403 */
function requireOwnPage({ request, dependencies }: Call): void {
  if (!isFromOtherOrigin(request, dependencies.settings)) return;
  throw forbidden('only pages of this service may sign in and out', [], []);
}

function shown(
  { dependencies }: Call,
  who:
    | (Pick<RegisteredAgent, 'namespace' | 'name' | 'scopes'> & {
        readonly agentId: string;
        readonly expiresAt: string | null;
      })
    | null,
): PageSession {
  const openid_connect = dependencies.settings.people !== null;
  if (who === null) return { agent: null, expires_at: null, openid_connect };
  const { agentId: id, namespace, name, scopes, expiresAt: expires_at } = who;
  return { agent: { id, namespace, name, scopes: [...scopes] }, expires_at, openid_connect };
}
