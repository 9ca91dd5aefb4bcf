import {
  auth,
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  extractWWWAuthenticateParams,
  refreshAuthorization,
} from '@modelcontextprotocol/sdk/client/auth.js';
import { ClientCredentialsProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { InvalidClientError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import { expect } from 'chai';
import { request } from 'node:http';
import { newId } from '../../domain/ids.ts';
import { useToolService } from './tool-protocol.ts';

const MCP = '/ext/mcp_http/mcp';
const WELL_KNOWN = '/.well-known/oauth-protected-resource';

const callOf = (name: string) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: {} },
});

/** Sends a POST with any headers, as the browser of a page does. @returns the status */
function post(url: string, headers: Readonly<Record<string, string>>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    });
    sent.on('error', reject).end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }));
  });
}

describe('the authorization of the Model Context Protocol', () => {
  const service = useToolService();
  const base = () => service().admin.client.url;

  it('names the metadata of the resource to a client without a token', async () => {
    const answer = await fetch(`${base()}${MCP}`, { method: 'POST' });
    expect(answer.status).to.equal(401);
    expect(answer.headers.get('www-authenticate')).to.equal(
      `Bearer resource_metadata="${base()}${WELL_KNOWN}${MCP}"`,
    );
    const { resourceMetadataUrl } = extractWWWAuthenticateParams(answer);
    const metadata = await discoverOAuthProtectedResourceMetadata(`${base()}${MCP}`, {
      ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
    });
    expect(metadata.resource).to.equal(`${base()}${MCP}`);
    expect(metadata.authorization_servers).to.deep.equal([base()]);
    expect(metadata.bearer_methods_supported).to.deep.equal(['header']);
    expect(metadata).to.include({ resource_documentation: `${base()}/docs` });
    expect(metadata.resource_name).to.equal('Task scheduling service');
    expect(metadata.scopes_supported).to.include('tasks:read');
  });

  it('responds to an invalid token with the error invalid_token', async () => {
    const headers = { authorization: 'Bearer nonsense' };
    const answer = await fetch(`${base()}${MCP}`, { method: 'POST', headers });
    expect(extractWWWAuthenticateParams(answer)).to.include({ error: 'invalid_token' });
    const other = await fetch(`${base()}/tasks`, { headers });
    expect(other.headers.get('www-authenticate')).to.equal('Bearer');
  });

  it('names the required scope to a client whose token lacks it', async () => {
    const { client } = service().reader;
    const answer = await client.post(MCP, callOf('run_task'));
    expect([answer.status, answer.at('error')]).to.deep.equal([403, 'forbidden']);
    expect(answer.header('WWW-Authenticate')).to.equal(
      'Bearer error="insufficient_scope", scope="tasks:write", ' +
        `resource_metadata="${base()}${WELL_KNOWN}${MCP}"`,
    );
    const elsewhere = await client.post('/tasks', {});
    expect([elsewhere.status, elsewhere.header('WWW-Authenticate')]).to.deep.equal([
      403,
      'Bearer error="insufficient_scope", scope="tasks:write"',
    ]);
  });

  it('accepts a token only in the header', async () => {
    const { token } = service().reader.client;
    const answer = await service()
      .reader.client.as(null)
      .post(`${MCP}?access_token=${token ?? ''}`, callOf('list_runs'));
    expect(answer.status).to.equal(401);
  });

  it('publishes metadata of the whole service to everybody', async () => {
    const open = service().admin.client.as(null);
    const { status, json } = await open.get(WELL_KNOWN);
    expect([status, json['resource']]).to.deep.equal([200, base()]);
    expect(json['authorization_servers']).to.deep.equal([base()]);
  });

  const from = (origin: string, more: Readonly<Record<string, string>> = {}) =>
    post(`${base()}${MCP}`, {
      authorization: `Bearer ${service().admin.client.token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      origin,
      ...more,
    });

  it('accepts calls from pages of its own origin only', async () => {
    expect(await from(base())).to.equal(200);
    const port = new URL(base()).port;
    const strange = ['https://elsewhere.example', 'null', 'http://127.0.0.1:1', 'nonsense'];
    for (const origin of strange) expect(await from(origin), origin).to.equal(403);
    expect(await from(`http://localhost:${port}`, { host: `localhost:${port}` })).to.equal(200);
    const noToken = await from('https://elsewhere.example', { authorization: '' });
    expect(noToken).to.equal(403);
  });

  it('refuses a page whose host name was made to resolve to this machine (DNS rebinding)', async () => {
    const host = `rebound.example:${new URL(base()).port}`;
    expect(await from(`http://${host}`, { host })).to.equal(403);
  });
});

describe('the authorization of the Model Context Protocol at a public address', () => {
  const service = useToolService({
    SVC_PUBLIC_URL: 'https://tasks.example/scheduler/',
    SVC_CORS_ORIGINS: 'https://app.example',
  });

  it('is described under that address', async () => {
    const { client } = service().admin;
    const { json } = await client.as(null).get(`${WELL_KNOWN}${MCP}`);
    expect(json['resource']).to.equal(`https://tasks.example/scheduler${MCP}`);
  });

  it('accepts calls from pages of the origins that the settings name', async () => {
    const { client } = service().admin;
    const statuses = ['https://tasks.example', 'https://app.example', 'https://other.example'].map(
      (origin) =>
        post(`${client.url}${MCP}`, {
          authorization: `Bearer ${client.token}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          origin,
        }),
    );
    expect(await Promise.all(statuses)).to.deep.equal([200, 200, 403]);
  });
});

describe('a client of the Model Context Protocol that uses OAuth', () => {
  const service = useToolService();
  const server = () => new URL(`${service().admin.client.url}${MCP}`);

  const credentials = async (scopes: readonly string[]) => {
    const { client } = service().admin;
    const made = await client.post('/agents', { name: newId(0), scopes });
    const clientId = made.textAt('id');
    const given = await client.post(`/agents/${clientId}/credentials`);
    return { clientId, clientSecret: given.textAt('agent_secret') };
  };

  it('finds the token server by itself, and calls tools with a token from it', async () => {
    const resource = await discoverOAuthProtectedResourceMetadata(server());
    const [issuer = ''] = resource.authorization_servers ?? [];
    const metadata = await discoverAuthorizationServerMetadata(issuer);
    expect(metadata).to.deep.include({ issuer, token_endpoint: `${issuer}/oauth/token` });
    const { clientId, clientSecret } = await credentials(['runs:read']);
    const authProvider = new ClientCredentialsProvider({
      clientId,
      clientSecret,
      expectedIssuer: issuer,
      scope: 'runs:read',
    });
    const client = new Client({ name: 'test', version: '1.0.0' });
    await client.connect(new StreamableHTTPClientTransport(server(), { authProvider }));
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).to.deep.equal([
      'list_runs',
      'get_run',
      'get_run_artifact',
    ]);
    const called = await client.callTool({ name: 'list_runs', arguments: {} });
    expect(called.isError).to.equal(false);
    await client.close();

    const clientInformation = { client_id: clientId, client_secret: clientSecret };
    const tokens = authProvider.tokens();
    if (metadata === undefined) throw new Error('there is no metadata');
    const refreshed = await refreshAuthorization(issuer, {
      metadata,
      clientInformation,
      refreshToken: tokens?.refresh_token ?? '',
      resource: new URL(resource.resource),
    });
    expect(refreshed.access_token).not.to.equal(tokens?.access_token);
  });

  it('receives an error if its secret is wrong', async () => {
    const { clientId } = await credentials([]);
    const authProvider = new ClientCredentialsProvider({
      clientId,
      clientSecret: 'wrong and long enough',
      expectedIssuer: service().admin.client.url,
    });
    const refused = await auth(authProvider, { serverUrl: server() }).catch(
      (error: unknown) => error,
    );
    expect(refused).to.be.instanceOf(InvalidClientError);
  });
});
