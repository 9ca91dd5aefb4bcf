import { expect } from 'chai';
import { newId } from '../../../domain/ids.ts';
import { useRunningApi } from '../../support/running-api.ts';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const WELL_KNOWN = '/.well-known/oauth-authorization-server';

interface Agent {
  readonly id: string;
  readonly secret: string;
}

type Fields = Readonly<Record<string, string>> | readonly (readonly [string, string])[];

describe('the OAuth token endpoint', () => {
  const api = useRunningApi();
  const open = () => api().admin.client.as(null);

  const newAgent = async (scopes: readonly string[] = ['tasks:read']): Promise<Agent> => {
    const { client } = api().admin;
    const id = (await client.post('/agents', { name: newId(Date.now()), scopes })).textAt('id');
    const given = await client.post(`/agents/${id}/credentials`);
    return { id, secret: given.textAt('agent_secret') };
  };
  const send = (fields: Fields, headers: Readonly<Record<string, string>> = {}) => {
    const form = new URLSearchParams(
      Array.isArray(fields) ? fields.map(([...each]) => each) : (fields as Record<string, string>),
    );
    return open().send('POST', '/oauth/token', {
      raw: form.toString(),
      headers: { ...FORM, ...headers },
    });
  };
  const basic = (id: string, secret: string) => ({
    authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
  });
  const inBody = ({ id, secret }: Agent) => ({ client_id: id, client_secret: secret });
  const grant = { grant_type: 'client_credentials' };

  it("is named in the service's metadata as its token server", async () => {
    const { url } = api();
    const { status, json } = await open().get(WELL_KNOWN);
    expect(status).to.equal(200);
    expect(json).to.deep.include({
      issuer: url,
      authorization_endpoint: `${url}/oauth/authorize`,
      token_endpoint: `${url}/oauth/token`,
      response_types_supported: [],
      grant_types_supported: ['client_credentials', 'refresh_token'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
      service_documentation: `${url}/docs`,
    });
    expect(json['scopes_supported']).to.include('tasks:read');
  });

  it('issues tokens to an agent that authenticates in the body or by Basic', async () => {
    const agent = await newAgent(['tasks:read', 'runs:read']);
    const answers = [
      await send({ ...grant, ...inBody(agent) }),
      await send(grant, basic(agent.id.toUpperCase(), agent.secret)),
      await send({ ...grant, client_id: agent.id }, basic(agent.id, agent.secret)),
    ];
    for (const answer of answers) {
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.json).to.include({
        token_type: 'bearer',
        expires_in: 3600,
        scope: 'tasks:read runs:read',
      });
      expect(answer.header('Cache-Control')).to.equal('no-store');
      expect(answer.header('X-Event-Position')).to.match(/^\d+$/);
      const token = answer.textAt('access_token');
      expect((await open().get('/tasks', { token })).status).to.equal(200);
    }
  });

  it('decodes Basic credentials as OAuth encodes them', async () => {
    const { id } = await newAgent();
    const agent_secret = 'p%20ss: wörd+and more';
    const { client } = api().admin;
    await client.post(`/agents/${id}/credentials`, { agent_secret });
    const encoded = encodeURIComponent(agent_secret).replaceAll('%20', '+');
    expect((await send(grant, basic(id, encoded))).status).to.equal(200);
    const plain = '100% of a long secret';
    await client.post(`/agents/${id}/credentials`, { agent_secret: plain });
    expect((await send(grant, basic(id, plain))).status).to.equal(200);
  });

  it("grants the agent's scopes, whatever is requested, and ignores unknown parameters", async () => {
    const agent = await newAgent(['tasks:read', 'runs:read']);
    const fields = { ...grant, ...inBody(agent), scope: 'runs:read admin', audience: 'x' };
    const answer = await send({ ...fields, refresh_token: '' });
    expect([answer.status, answer.at('scope')]).to.deep.equal([200, 'tasks:read runs:read']);
  });

  it("exchanges an agent's refresh token once, and ends the session if it is used again", async () => {
    const agent = await newAgent();
    const first = await send({ ...grant, ...inBody(agent) });
    const refresh = (refresh_token: string) =>
      send({ grant_type: 'refresh_token', refresh_token }, basic(agent.id, agent.secret));
    const next = await refresh(first.textAt('refresh_token'));
    expect(next.status, next.text).to.equal(200);
    const token = next.textAt('access_token');
    expect((await open().get('/tasks', { token })).status).to.equal(200);
    const again = await refresh(first.textAt('refresh_token'));
    expect([again.status, again.at('error')]).to.deep.equal([400, 'invalid_grant']);
    expect(again.headers).not.to.have.property('www-authenticate');
    expect((await open().get('/tasks', { token })).status).to.equal(401);
  });

  it("refuses another agent's refresh token, and keeps that session", async () => {
    const agent = await newAgent();
    const other = await newAgent();
    const theirs = (await send({ ...grant, ...inBody(other) })).textAt('refresh_token');
    const fields = { grant_type: 'refresh_token', refresh_token: theirs };
    const stolen = await send({ ...fields, ...inBody(agent) });
    expect([stolen.status, stolen.at('error')]).to.deep.equal([400, 'invalid_grant']);
    const unnamed = await send(fields);
    expect([unnamed.status, unnamed.at('error')]).to.deep.equal([401, 'invalid_client']);
    expect((await send({ ...fields, ...inBody(other) })).status).to.equal(200);
  });

  it('refuses an unauthenticated client with a challenge', async () => {
    const agent = await newAgent();
    const refused = [
      await send(grant),
      await send({ ...grant, client_id: agent.id }),
      await send({ ...grant, client_id: 'x', client_secret: agent.secret }),
      await send({ ...grant, ...inBody({ ...agent, secret: 'wrong and long enough' }) }),
      await send({ ...grant, ...inBody({ ...agent, id: newId(0) }) }),
      await send(grant, basic(agent.id, 'wrong and long enough')),
      await send(grant, { authorization: 'Basic !' }),
      await send(grant, { authorization: `Bearer ${api().admin.client.token ?? ''}` }),
    ];
    for (const answer of refused) {
      expect([answer.status, answer.at('error')]).to.deep.equal([401, 'invalid_client']);
      expect(answer.json).to.have.all.keys('error', 'error_description');
      expect(answer.header('WWW-Authenticate')).to.match(/^Basic realm=/);
      expect(answer.header('Cache-Control')).to.equal('no-store');
    }
  });

  it('refuses an invalid request, and says why', async () => {
    const agent = await newAgent();
    const client = Object.entries(inBody(agent));
    const cases: readonly (readonly [Fields, string, RegExp])[] = [
      [inBody(agent), 'invalid_request', /^grant_type: is required$/],
      [{ ...inBody(agent), grant_type: 'refresh_token' }, 'invalid_request', /^refresh_token: /],
      [[...client, ...client, ['grant_type', 'x']], 'invalid_request', /^client_id: must be given/],
      [
        { ...inBody(agent), grant_type: 'password' },
        'unsupported_grant_type',
        /client_credentials/,
      ],
      [{ ...inBody(agent), grant_type: '"ä\\' }, 'unsupported_grant_type', /^[ !#-[\]-~]+$/],
    ];
    for (const [fields, error, description] of cases) {
      const answer = await send(fields);
      expect([answer.status, answer.at('error')], answer.text).to.deep.equal([400, error]);
      expect(answer.textAt('error_description')).to.match(description);
    }
    const both = await send({ ...grant, ...inBody(agent) }, basic(agent.id, agent.secret));
    expect([both.status, both.at('error')]).to.deep.equal([400, 'invalid_request']);
    const other = await send({ ...grant, client_id: newId(0) }, basic(agent.id, agent.secret));
    expect([other.status, other.at('error')]).to.deep.equal([400, 'invalid_request']);
    const broken = await open().send('POST', '/oauth/token', {
      raw: Buffer.from([0x61, 0x3d, 0xff]),
      headers: FORM,
    });
    expect([broken.status, broken.at('error')]).to.deep.equal([400, 'invalid_request']);
  });

  it('accepts only a form of limited size', async () => {
    const large = await send({ scope: 'x'.repeat(1_048_577) });
    expect([large.status, large.at('error')]).to.deep.equal([413, 'payload_too_large']);
    const types = ['application/json', 'text/plain', `${FORM['content-type']}; charset=utf-16`];
    for (const type of types) {
      const answer = await send(grant, { 'content-type': type });
      expect([answer.status, answer.at('error')]).to.deep.equal([415, 'unsupported_media_type']);
    }
    const named = { 'content-type': `${FORM['content-type']};charset=UTF-8` };
    expect((await send(grant, named)).at('error')).to.equal('invalid_client');
  });

  it("accepts only the service's resources", async () => {
    const agent = await newAgent();
    const { url } = api();
    const mcp = `${url}/ext/mcp_http/mcp`;
    const fields = Object.entries({ ...grant, ...inBody(agent) });
    for (const resources of [[url], [`${url}/`], [mcp], [mcp.replace('http:', 'HTTP:'), url]]) {
      const named = resources.map((each) => ['resource', each] as const);
      const answer = await send([...fields, ...named]);
      expect(answer.status, resources.join()).to.equal(200);
    }
    const strange = ['https://elsewhere.example', `${url}/tasks`, `${mcp}#x`, `${mcp}?x`, 'tasks'];
    for (const resource of strange) {
      const answer = await send([...fields, ['resource', url], ['resource', resource]]);
      expect([answer.status, answer.at('error')]).to.deep.equal([400, 'invalid_target']);
    }
  });

  it('records refusals of known agents in the audit', async () => {
    const agent = await newAgent();
    const other = await newAgent();
    await send(grant, basic(agent.id, 'wrong and long enough'));
    await send({ grant_type: 'refresh_token', refresh_token: 'x', ...inBody(agent) });
    const theirs = (await send({ ...grant, ...inBody(other) })).textAt('refresh_token');
    await send({ grant_type: 'refresh_token', refresh_token: theirs, client_id: agent.id });
    await send({ ...grant, client_id: newId(0) });
    await send({ ...inBody(agent) });
    await api().refusals.flush();
    const recorded = async (id: string) => {
      const path = `/audit?actor=${id}&type=CommandRefused`;
      const { json } = await api().admin.client.get(path);
      return (json['items'] as readonly { readonly refusal: object }[]).map(
        ({ refusal }) => refusal as { status: number; code: string; count: number },
      );
    };
    const items = await recorded(agent.id);
    expect(items.map(({ status, code }) => `${status} ${code}`)).to.have.members([
      '401 invalid_client',
      '401 invalid_client',
      '400 invalid_grant',
    ]);
    expect(await recorded(other.id)).to.deep.equal([]);
  });

  it('has no endpoint for interactive login', async () => {
    const answer = await open().get('/oauth/authorize?response_type=code&client_id=x');
    expect([answer.status, answer.at('error')]).to.deep.equal([400, 'unsupported_response_type']);
    expect(answer.textAt('error_description')).to.match(/client_credentials/);
    expect(answer.headers).not.to.have.property('location');
  });
});

describe('the OAuth token endpoint at a public address', () => {
  const api = useRunningApi({ publicUrl: 'https://tasks.example/scheduler' });

  it('is described at that address, even below a path', async () => {
    const { client } = api().admin;
    for (const path of [WELL_KNOWN, `${WELL_KNOWN}/scheduler`]) {
      const { json } = await client.get(path);
      expect(json).to.include({
        issuer: 'https://tasks.example/scheduler',
        token_endpoint: 'https://tasks.example/scheduler/oauth/token',
      });
    }
  });
});

describe('the OAuth token endpoint with agents that may lack a secret', () => {
  const api = useRunningApi({ allowSecretless: true });

  it('accepts only the id of an agent without a secret', async () => {
    const { client } = api().admin;
    const made = await client.post('/agents', { name: 'secretless', scopes: [] });
    const form = { grant_type: 'client_credentials', client_id: made.textAt('id') };
    const answer = await client
      .as(null)
      .send('POST', '/oauth/token', { raw: new URLSearchParams(form).toString(), headers: FORM });
    expect(answer.status, answer.text).to.equal(200);
  });
});

describe('the OAuth token endpoint during guessing', () => {
  // A separate service: its window starts with it and does not end during the guesses.
  const api = useRunningApi();

  it("shares its limit on guessing with the service's own endpoint", async () => {
    const { client } = api().admin;
    const made = await client.post('/agents', { name: 'guessed', scopes: [] });
    const client_id = made.textAt('id');
    const given = await client.post(`/agents/${client_id}/credentials`);
    const agent_secret = given.textAt('agent_secret');
    const send = (client_secret: string) => {
      const form = { grant_type: 'client_credentials', client_id, client_secret };
      const raw = new URLSearchParams(form).toString();
      return client.as(null).send('POST', '/oauth/token', { raw, headers: FORM });
    };
    await Promise.all(Array.from({ length: 10 }, () => send('wrong and long enough')));
    const refused = await send(agent_secret);
    expect([refused.status, refused.at('error')]).to.deep.equal([429, 'rate_limit_exceeded']);
    expect(Number(refused.header('Retry-After'))).to.be.greaterThan(0);
    const body = { agent_id: client_id, agent_secret };
    expect((await client.as(null).post('/agents/auth/token', body)).status).to.equal(429);
  });
});
