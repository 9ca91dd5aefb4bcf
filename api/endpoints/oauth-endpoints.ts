import { isUuid } from '../../domain/ids.ts';
import { TOKEN_PATH, grantTypes, isOwnResource } from '../access/authorization-server.ts';
import { beginSession, refreshTokens, signIn } from '../access/token-pairs.ts';
import { endpoint, type Call, type Endpoint } from '../endpoint.ts';
import { HttpError, OAuthError, type OAuthErrorCode } from '../errors.ts';
import { OAuthRefusal, Tokens } from '../schemas/response-schemas-agents.ts';
import { OAuthTokenRequest } from '../schemas/schemas.ts';

/** The token endpoint of OAuth 2.0 (RFC 6749, sections 4.4 and 6). */
const token = endpoint(`POST ${TOKEN_PATH}`, {
  operationId: 'requestOAuthToken',
  summary: "Exchanges an agent's id and secret, or its refresh token, for tokens (OAuth 2.0)",
  description:
    'The client authenticates by HTTP Basic or in the body. `scope` is ignored: a token has the scopes of its agent.',
  scopes: null,
  body: OAuthTokenRequest,
  oauth: true,
  responses: { 200: Tokens, 400: OAuthRefusal, 401: OAuthRefusal },
  async handle(call) {
    const { grant_type, refresh_token, resource = [] } = call.body;
    if (!grantTypes.some((each) => each === grant_type)) {
      const message = `grant_type must be ${grantTypes.join(' or ')}`;
      throw new OAuthError('unsupported_grant_type', message);
    }
    if (grant_type === 'refresh_token' && refresh_token === undefined) {
      throw new OAuthError('invalid_request', 'refresh_token: is required');
    }
    const base = call.base();
    const unknown = resource.find((each) => !isOwnResource(each, base));
    if (unknown !== undefined) {
      throw new OAuthError('invalid_target', `resource: ${unknown} is not a resource of ${base}`);
    }
    const { agentId, agent } = await authenticateClient(call);
    if (refresh_token === undefined || grant_type !== 'refresh_token') {
      return beginSession(call, agentId, agent);
    }
    return withOAuthCode('invalid_grant', () => refreshTokens(call, refresh_token, agentId));
  },
});

/** @throws OAuthError `invalid_client`; HttpError 429 */
async function authenticateClient(call: Call<OAuthTokenRequest, unknown>) {
  const { client_id, client_secret } = call.body;
  if (client_id === undefined || !isUuid(client_id)) {
    throw new OAuthError('invalid_client', "client_id must be an agent's id");
  }
  const agentId = client_id.toLowerCase();
  const agent = await withOAuthCode('invalid_client', () => signIn(call, agentId, client_secret));
  return { agentId, agent };
}

/** Gives a 401 its code of OAuth. */
async function withOAuthCode<T>(code: OAuthErrorCode, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isRefusal = error instanceof HttpError && error.code === 'unauthorized';
    throw isRefusal ? new OAuthError(code, error.message) : error;
  }
}

export const oauthEndpoints: readonly Endpoint[] = [token];
