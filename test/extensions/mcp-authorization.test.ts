import {
  discoverOAuthProtectedResourceMetadata,
  extractWWWAuthenticateParams,
} from '@modelcontextprotocol/sdk/client/auth.js';
import { expect } from 'chai';
import { request } from 'node:http';
import { useToolService } from './tool-protocol.ts';

const MCP = '/ext/mcp_http/mcp';
const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/** Sends a raw POST, as the browser of a page does, and gives the status. */
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
    expect(metadata.bearer_methods_supported).to.deep.equal(['header']);
    expect(metadata).to.include({ resource_documentation: `${base()}/docs` });
    expect(metadata.resource_name).to.equal('Task scheduling service');
    expect(metadata.scopes_supported).to.include('tasks:read');
  });

  it('tells a client whose token does not count that the token is at fault', async () => {
    const headers = { authorization: 'Bearer nonsense' };
    const answer = await fetch(`${base()}${MCP}`, { method: 'POST', headers });
    expect(extractWWWAuthenticateParams(answer)).to.include({ error: 'invalid_token' });
    const other = await fetch(`${base()}/tasks`, { headers });
    expect(other.headers.get('www-authenticate')).to.equal('Bearer');
  });

  it('has metadata of the whole service for everybody', async () => {
    const open = service().admin.client.as(null);
    const { status, json } = await open.get(WELL_KNOWN);
    expect([status, json['resource']]).to.deep.equal([200, base()]);
    // An agent gets its tokens from this service, which is no OAuth server.
    expect(json).not.to.have.property('authorization_servers');
  });

  const from = (origin: string, more: Readonly<Record<string, string>> = {}) =>
    post(`${base()}${MCP}`, {
      authorization: `Bearer ${service().admin.client.token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      origin,
      ...more,
    });

  it('takes calls of its own pages alone', async () => {
    expect(await from(base())).to.equal(200);
    const port = new URL(base()).port;
    const strange = ['https://elsewhere.example', 'null', 'http://127.0.0.1:1', 'nonsense'];
    for (const origin of strange) expect(await from(origin), origin).to.equal(403);
    expect(await from(`http://localhost:${port}`, { host: `localhost:${port}` })).to.equal(200);
    const noToken = await from('https://elsewhere.example', { authorization: '' });
    expect(noToken).to.equal(403);
  });

  it('takes no call of a page whose name was led to this machine', async () => {
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

  it('takes calls of the pages that the settings name', async () => {
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
