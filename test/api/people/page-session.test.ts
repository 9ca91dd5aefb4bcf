import { expect } from 'chai';
import { createSecretKey } from 'node:crypto';
import { CookieBrowser } from '../../support/cookie-browser.ts';
import { RunningApi, useRunningApi } from '../../support/running-api.ts';

interface Agent {
  readonly agent_id: string;
  readonly agent_secret: string;
}

const SAME = { 'sec-fetch-site': 'same-origin' };

async function newAgent(api: RunningApi, scopes: readonly string[]): Promise<Agent> {
  const { client } = api.admin;
  const id = (await client.post('/agents', { name: `a ${Math.random()}`, scopes })).textAt('id');
  const given = await client.post(`/agents/${id}/credentials`);
  return { agent_id: id, agent_secret: given.textAt('agent_secret') };
}

describe('a session of the page', () => {
  const api = useRunningApi();
  let agent: Agent;
  before(async () => {
    agent = await newAgent(api(), ['tasks:read', 'events:publish']);
  });
  const signedIn = async (): Promise<CookieBrowser> => {
    const browser = new CookieBrowser(api().url);
    const done = await browser.request('POST', `${api().url}/auth/session`, { body: agent });
    expect(done.status, done.text).to.equal(200);
    return browser;
  };
  const publish = { topic: 't', payload: {} };
  const post = async (browser: CookieBrowser, headers: Readonly<Record<string, string>>) => {
    const body = { ...publish, source_agent_id: agent.agent_id };
    return (await browser.request('POST', `${api().url}/events`, { headers, body })).status;
  };
  const read = async (browser: CookieBrowser, headers: Readonly<Record<string, string>>) =>
    (await browser.request('GET', `${api().url}/tasks`, { headers })).status;

  it('starts with the right secret, in a cookie that no script and no other site can use', async () => {
    const browser = await signedIn();
    const [cookie = ''] = browser.set;
    expect(cookie).to.match(
      /^svc_session_\d+=[\w.-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    );
    const wrong = { ...agent, agent_secret: 'wrong and long enough' };
    const other = new CookieBrowser(api().url);
    const headers = { accept: 'application/json' };
    const refused = await other.request('POST', `${api().url}/auth/session`, {
      body: wrong,
      headers,
    });
    expect(refused.status).to.equal(401);
    expect(other.set).to.deep.equal([]);
  });

  it('shows who is signed in, or nobody without a cookie', async () => {
    const browser = await signedIn();
    const shown = JSON.parse((await browser.request('GET', `${api().url}/auth/session`)).text);
    expect(shown.agent).to.deep.include({ id: agent.agent_id, namespace: 'default' });
    expect(shown.openid_connect).to.equal(false);
    const none = await new CookieBrowser(api().url).request('GET', `${api().url}/auth/session`);
    expect(JSON.parse(none.text)).to.include({ agent: null, expires_at: null });
  });

  it('is only accepted in requests of the page itself', async () => {
    const browser = await signedIn();
    const { url } = api();
    const own = { origin: url };
    const foreign = { origin: 'http://127.0.0.1:1' };
    const cases: readonly [Readonly<Record<string, string>>, reads: number, writes: number][] = [
      [SAME, 200, 202],
      [{ ...SAME, ...own }, 200, 202],
      [{ 'sec-fetch-site': 'none' }, 200, 401],
      [{ 'sec-fetch-site': 'same-site' }, 401, 401],
      [{ 'sec-fetch-site': 'cross-site' }, 401, 401],
      [{ 'sec-fetch-site': 'cross-site', ...own }, 401, 401],
      // Browsers that do not send that header.
      [own, 200, 202],
      [{}, 200, 401],
      [foreign, 401, 401],
      [{ origin: 'null' }, 401, 401],
      [{ origin: url.replace('http:', 'https:') }, 401, 401],
      [{ origin: `${url}.evil.example` }, 401, 401],
    ];
    for (const [headers, reads, writes] of cases) {
      expect(await read(browser, headers), JSON.stringify(headers)).to.equal(reads);
      expect(await post(browser, headers), JSON.stringify(headers)).to.equal(writes);
    }
  });

  it('is only accepted for a WebSocket of the page itself', async () => {
    const browser = await signedIn();
    const upgrade = { upgrade: 'websocket' };
    const path = `${api().url}/tasks`;
    const cookie = `${browser.session}=${browser.cookies.get(browser.session) ?? ''}`;
    const send = (headers: Readonly<Record<string, string>>) =>
      api()
        .admin.client.as(null)
        .get('/tasks', { headers: { ...upgrade, cookie, ...headers } });
    expect(path).to.include('/tasks');
    expect((await send({ origin: api().url })).status).to.equal(200);
    expect((await send({ origin: 'http://evil.example' })).status).to.equal(401);
    expect((await send({})).status).to.equal(401);
  });

  it('cannot be started or ended by another site', async () => {
    const browser = await signedIn();
    const headers = { accept: 'application/json', 'sec-fetch-site': 'cross-site' };
    const options = { headers, body: agent };
    const planted = await browser.request('POST', `${api().url}/auth/session`, options);
    expect(planted.status).to.equal(403);
    const out = await browser.request('DELETE', `${api().url}/auth/session`, { headers });
    expect(out.status).to.equal(403);
    expect(await read(browser, SAME)).to.equal(200);
    const form = await fetch(`${api().url}/auth/session`, {
      method: 'POST',
      headers: { 'content-type': 'text/plain' },
      body: JSON.stringify(agent),
    });
    expect(form.status).to.equal(415);
  });

  it('ends when signing out, even for a copy of its cookie', async () => {
    const browser = await signedIn();
    const copy = new CookieBrowser(api().url);
    copy.cookies.set(browser.session, browser.cookies.get(browser.session) ?? '');
    expect(await read(copy, SAME)).to.equal(200);
    const out = await browser.request('DELETE', `${api().url}/auth/session`, { headers: SAME });
    expect(out.status).to.equal(200);
    expect(browser.cookies.size).to.equal(0);
    expect(await read(copy, SAME)).to.equal(401);
    // There is no session left to end.
    const again = await browser.request('DELETE', `${api().url}/auth/session`, { headers: SAME });
    expect(again.status).to.equal(200);
  });

  it('ends after its time, with a new secret, and when its agent is removed', async () => {
    const browser = await signedIn();
    api().clock.shift(43_201_000);
    expect(await read(browser, SAME)).to.equal(401);
    api().clock.shift(-43_201_000);
    expect(await read(browser, SAME)).to.equal(200);
    const other = await newAgent(api(), ['tasks:read']);
    for (const end of ['credentials', 'removal'] as const) {
      const theirs = new CookieBrowser(api().url);
      const { client } = api().admin;
      const { agent_secret } = {
        agent_secret: (await client.post(`/agents/${other.agent_id}/credentials`)).textAt(
          'agent_secret',
        ),
      };
      await theirs.request('POST', `${api().url}/auth/session`, {
        body: { ...other, agent_secret },
      });
      expect(await read(theirs, SAME)).to.equal(200);
      if (end === 'credentials') await client.post(`/agents/${other.agent_id}/credentials`);
      else await client.delete(`/agents/${other.agent_id}`);
      expect(await read(theirs, SAME), end).to.equal(401);
    }
  });

  it('cannot be renewed like a refresh token, and its cookie accepts no other token', async () => {
    const browser = await signedIn();
    const token = browser.cookies.get(browser.session) ?? '';
    const { client } = api().admin;
    const renewed = await client.as(null).post('/agents/auth/refresh', { refresh_token: token });
    expect(renewed.status).to.equal(401);
    const pair = await client.as(null).post('/agents/auth/token', agent);
    browser.cookies.set(browser.session, pair.textAt('refresh_token'));
    expect(await read(browser, SAME)).to.equal(401);
  });

  it('is not accepted from a cookie that was sent twice or belongs to another port', async () => {
    const browser = await signedIn();
    const token = browser.cookies.get(browser.session) ?? '';
    const send = (cookie: string) =>
      api()
        .admin.client.as(null)
        .get('/tasks', { headers: { ...SAME, cookie } });
    expect((await send(`a=b; ${browser.session}=${token}; c=d`)).status).to.equal(200);
    expect((await send(`${browser.session}=x; ${browser.session}=${token}`)).status).to.equal(401);
    expect((await send(`svc_session_1=${token}`)).status).to.equal(401);
    expect((await send(`x${browser.session}=${token}`)).status).to.equal(401);
  });

  it('is ignored if there is a bearer token', async () => {
    const browser = await signedIn();
    const headers = { ...SAME, authorization: `Bearer ${api().admin.client.token ?? ''}` };
    const shown = await browser.request('GET', `${api().url}/auth/session`, { headers });
    expect(JSON.parse(shown.text).agent.id).to.equal(api().admin.id);
  });
});

describe('a session of the page behind TLS', () => {
  const api = useRunningApi({
    publicUrl: 'https://tasks.example',
    tokenKeys: { jwtKey: createSecretKey(Buffer.alloc(32, 9)), previousJwtKey: null },
  });

  it('uses a cookie that only this host may set, and only over TLS', async () => {
    const agent = await newAgent(api(), ['tasks:read']);
    const browser = new CookieBrowser(api().url);
    await browser.request('POST', `${api().url}/auth/session`, { body: agent });
    expect(browser.set[0]).to.match(
      /^__Host-svc_session=[^;]+; Path=\/; .*SameSite=Strict; Secure$/,
    );
    const cookie = `__Host-svc_session=${browser.cookies.get('__Host-svc_session') ?? ''}`;
    const { client } = api().admin;
    const send = (headers: Readonly<Record<string, string>>) =>
      client.as(null).get('/tasks', { headers: { cookie, ...headers } });
    expect((await send({ origin: 'https://tasks.example' })).status).to.equal(200);
    expect((await send({ origin: 'http://tasks.example' })).status).to.equal(401);
    expect((await send({ origin: 'https://other.tasks.example' })).status).to.equal(401);
  });
});
