import { expect } from 'chai';
import { agentFold } from '../../../domain/agents/agent.ts';
import { load } from '../../../domain/handle.ts';
import { streams } from '../../../domain/streams.ts';
import { CookieBrowser } from '../../support/cookie-browser.ts';
import { auditOf } from '../auditing.ts';
import { usePeopleWorld } from './people-world.ts';

describe('the sign-in of people', () => {
  const world = usePeopleWorld();
  const { api, provider, signIn, sessionOf } = {
    api: () => world().api,
    provider: () => world().provider,
    signIn: (browser: CookieBrowser, sub: string) => world().signIn(browser, sub),
    sessionOf: (browser: CookieBrowser) => world().sessionOf(browser),
  };
  const knows = (sub: string, groups: readonly string[], more: object = {}): void =>
    void provider().people.set(sub, { preferred_username: sub, groups, ...more });
  const agent = async (id: string) => (await load(api().store, streams.agent(id), agentFold)).state;

  it('registers a person as an agent with the scopes of the claims, and leads to the page', async () => {
    knows('ada', ['operators', 'strangers']);
    const browser = new CookieBrowser(api().url);
    const form = await world().begin(browser, 'runs?state=failed');
    const done = await browser.submit(form, { sub: 'ada' });
    expect(done.status, done.text).to.equal(200);
    expect(done.text).to.include('content="0; url=../../ext/webui/#/runs?state=failed"');
    const { agent: shown } = await sessionOf(browser);
    expect(shown).to.deep.include({ namespace: 'default', name: 'ada' });
    expect(shown?.scopes).to.deep.equal(['ops', 'runs:read', 'tasks:read']);
    const read = await browser.request('GET', `${api().url}/tasks`);
    expect(read.status).to.equal(200);
  });

  it('asks with PKCE, state and nonce, for the registered address', async () => {
    const { headers } = await new CookieBrowser(api().url).request(
      'GET',
      `${api().url}/auth/oidc/login`,
    );
    const { searchParams: query } = new URL(headers.get('location') ?? '');
    expect(query.get('code_challenge_method')).to.equal('S256');
    expect(query.get('redirect_uri')).to.equal(`${api().url}/auth/oidc/callback`);
    for (const name of ['code_challenge', 'state', 'nonce']) {
      expect(query.get(name), name).to.match(/^[\w-]{43}$/);
    }
  });

  it('keeps one agent per person, whose scopes follow the claims each time', async () => {
    knows('grace', ['operators']);
    const browser = new CookieBrowser(api().url);
    await signIn(browser, 'grace');
    const first = (await sessionOf(browser)).agent;
    knows('grace', ['authors']);
    const again = new CookieBrowser(api().url);
    await signIn(again, 'grace');
    const second = (await sessionOf(again)).agent;
    expect(second?.id).to.equal(first?.id);
    expect(second?.scopes).to.deep.equal(['tasks:read', 'tasks:write']);
    // Even in the session that started before.
    expect((await sessionOf(browser)).agent?.scopes).to.deep.equal(second?.scopes);
  });

  it('gives people with the same name different agent names', async () => {
    for (const sub of ['alan-1', 'alan-2']) {
      knows(sub, ['operators'], { preferred_username: 'alan' });
      await signIn(new CookieBrowser(api().url), sub);
    }
    const { list } = await api().admin.client.get(
      `/agents?name_filter=alan&after=${await api().store.head()}`,
    );
    const names = list.map(({ name }) => String(name)).sort();
    expect(names).to.have.length(2);
    expect(names[0]).to.equal('alan');
    expect(names[1]).to.match(/^alan \([0-9a-f]{8}\)$/);
  });

  it('rejects a person without any scope, says why, and records it', async () => {
    knows('eve', ['strangers']);
    const browser = new CookieBrowser(api().url);
    const refused = await signIn(browser, 'eve');
    expect(refused.status).to.equal(403);
    expect(refused.headers.get('content-type')).to.include('text/html');
    expect(refused.text).to.include('Your account gives you no access here');
    expect((await sessionOf(browser)).agent).to.equal(null);
    const items = await auditOf(api(), api().admin, 'actor=anonymous&type=CommandRefused');
    expect(items[0]).to.include({ action: 'GET /auth/oidc/callback', source: '127.0.0.1' });
    expect(items[0]?.reason).to.equal(
      `sign-in refused (no_scopes): subject "eve" of ${provider().issuer}`,
    );
    const { list } = await api().admin.client.get(
      `/agents?name_filter=eve&after=${await api().store.head()}`,
    );
    expect(list).to.deep.equal([]);
  });

  it("removes the scopes of a person's agent when the claims no longer give any", async () => {
    knows('mallory', ['operators']);
    const browser = new CookieBrowser(api().url);
    await signIn(browser, 'mallory');
    const id = (await sessionOf(browser)).agent?.id ?? '';
    knows('mallory', []);
    expect((await signIn(new CookieBrowser(api().url), 'mallory')).status).to.equal(403);
    expect(await agent(id))
      .to.include({ status: 'registered' })
      .and.to.deep.include({ scopes: [] });
    expect((await browser.request('GET', `${api().url}/tasks`)).status).to.equal(403);
    const items = await auditOf(api(), api().admin, `actor=${id}&type=CommandRefused`);
    expect(items.map(({ action }) => action)).to.include('GET /auth/oidc/callback');
  });

  it('gives a person another agent in another namespace, and removes the scopes of the former', async () => {
    knows('edsger', ['operators']);
    const browser = new CookieBrowser(api().url);
    await signIn(browser, 'edsger');
    const former = (await sessionOf(browser)).agent?.id ?? '';
    knows('edsger', ['billing']);
    await signIn(browser, 'edsger');
    const { agent: moved } = await sessionOf(browser);
    expect(moved).to.deep.include({ namespace: 'billing', scopes: ['tasks:read'] });
    expect(moved?.id).to.not.equal(former);
    expect(await agent(former)).to.deep.include({ scopes: [] });
    knows('edsger', ['operators']);
    await signIn(browser, 'edsger');
    expect((await sessionOf(browser)).agent?.id).to.equal(former);
    expect(await agent(moved?.id ?? '')).to.deep.include({ scopes: [] });
  });

  it('is rejected for a namespace that does not exist', async () => {
    knows('nobody', ['nobody']);
    const refused = await signIn(new CookieBrowser(api().url), 'nobody');
    expect(refused.status).to.equal(403);
    expect(refused.text).to.include('the namespace nowhere, which does not exist here');
  });

  it('keeps the last admin, and says so', async () => {
    knows('root', ['admins']);
    const browser = new CookieBrowser(api().url);
    await signIn(browser, 'root');
    const root = (await sessionOf(browser)).agent?.id ?? '';
    const { admin } = api();
    await admin.client.get(`/agents?name_filter=admin&after=${await api().store.head()}`);
    const withdrawn = await admin.client.put(`/agents/${admin.id}`, { scopes: ['audit:read'] });
    expect(withdrawn.status, withdrawn.text).to.equal(200);
    knows('root', ['operators']);
    const refused = await signIn(new CookieBrowser(api().url), 'root');
    expect(refused.status).to.equal(403);
    expect(refused.text).to.include('The last admin keeps the scope admin');
    expect(await agent(root)).to.deep.include({ scopes: ['admin'] });
    const headers = { 'sec-fetch-site': 'same-origin' };
    const body = { scopes: ['admin'] };
    await browser.request('PUT', `${api().url}/agents/${admin.id}`, { headers, body });
    await admin.client.get(`/agents?name_filter=admin&after=${await api().store.head()}`);
    expect((await signIn(new CookieBrowser(api().url), 'root')).status).to.equal(200);
  });

  it('registers a new agent for a removed person, and records each sign-in', async () => {
    knows('barbara', ['operators']);
    const browser = new CookieBrowser(api().url);
    await signIn(browser, 'barbara');
    const removed = (await sessionOf(browser)).agent?.id ?? '';
    const answer = await api().admin.client.delete(`/agents/${removed}`);
    expect(answer.status, answer.text).to.equal(200);
    expect((await sessionOf(browser)).agent).to.equal(null);
    await signIn(browser, 'barbara');
    const { agent: fresh } = await sessionOf(browser);
    expect(fresh?.id).to.not.equal(removed);
    expect(fresh?.name).to.equal('barbara');
    const items = await auditOf(api(), api().admin, `actor=${fresh?.id ?? ''}`);
    const types = items.map(({ type }) => type);
    expect(types).to.include.members(['PersonIdentified', 'AgentRegistered', 'SessionStarted']);
  });

  it('is completed after a process died at any of its appends', async () => {
    const places = [
      ['person-', 'PersonIdentified'],
      ['agentname-', 'NameReserved'],
      ['agent-', 'AgentRegistered'],
      ['session-', 'SessionStarted'],
    ] as const;
    for (const [prefix, type] of places) {
      for (const when of ['before', 'after'] as const) {
        const sub = `dies-${prefix}${when}`;
        knows(sub, ['operators']);
        api().store.failNext(prefix, when, type);
        const failed = await signIn(new CookieBrowser(api().url), sub);
        expect([200, 503], `${sub} ${failed.text}`).to.include(failed.status);
        const browser = new CookieBrowser(api().url);
        const done = await signIn(browser, sub);
        expect(done.status, `${sub} ${done.text}`).to.equal(200);
        const { agent: shown } = await sessionOf(browser);
        expect(shown?.name).to.equal(sub);
        expect(shown?.scopes).to.deep.equal(['ops', 'runs:read', 'tasks:read']);
      }
    }
  });

  it('applies the new claims after a process died while it changed the agents', async () => {
    const moves = [
      ['authors', 'agent-'],
      ['billing', 'agent-'],
      ['billing', 'agentname-'],
    ] as const;
    for (const [index, [group, prefix]] of moves.entries()) {
      const sub = `moves-${index}`;
      knows(sub, ['operators']);
      const browser = new CookieBrowser(api().url);
      await signIn(browser, sub);
      const former = (await sessionOf(browser)).agent?.id ?? '';
      knows(sub, [group]);
      api().store.failNext(prefix);
      expect((await signIn(new CookieBrowser(api().url), sub)).status, sub).to.equal(503);
      await signIn(browser, sub);
      const { agent: present } = await sessionOf(browser);
      const scopes = group === 'authors' ? ['tasks:read', 'tasks:write'] : ['tasks:read'];
      expect(present?.scopes).to.deep.equal(scopes);
      if (present?.id !== former) expect(await agent(former)).to.deep.include({ scopes: [] });
    }
  });

  it('registers another agent if the registration of the first was abandoned', async () => {
    knows('slow', ['operators']);
    api().store.failNext('agent-', 'before', 'AgentRegistered');
    expect((await signIn(new CookieBrowser(api().url), 'slow')).status).to.equal(503);
    api().clock.shift(61_000);
    const other = await api().admin.client.post('/agents', { name: 'slow', scopes: [] });
    expect(other.status, other.text).to.equal(201);
    const browser = new CookieBrowser(api().url);
    await signIn(browser, 'slow');
    expect((await sessionOf(browser)).agent?.name).to.match(/^slow \([0-9a-f]{8}\)$/);
    api().clock.shift(-61_000);
  });

  it('registers one agent for a person who signs in twice at once', async () => {
    knows('twin', ['operators']);
    const browsers = [new CookieBrowser(api().url), new CookieBrowser(api().url)] as const;
    const callbacks = await Promise.all(
      browsers.map((each) => world().untilCallback(each, 'twin')),
    );
    const done = await Promise.all(browsers.map((each, n) => each.open(callbacks[n] ?? '')));
    expect(done.map(({ status }) => status)).to.deep.equal([200, 200]);
    const [one, other] = await Promise.all(browsers.map(sessionOf));
    expect(one?.agent?.id).to.be.a('string').that.equals(other?.agent?.id);
  });

  it('is rejected with the message of the provider, and can be started again', async () => {
    const browser = new CookieBrowser(api().url);
    const form = await world().begin(browser);
    const refused = await browser.submit(form, { sub: '', deny: 'yes' });
    expect(refused.status).to.equal(403);
    expect(refused.text).to.include('The identity provider has refused the sign-in');
    knows('ada', ['operators']);
    expect((await signIn(browser, 'ada')).status).to.equal(200);
  });

  it('says that the provider does not respond, in JSON to a program', async () => {
    const browser = new CookieBrowser(api().url);
    knows('late', ['operators']);
    const callback = await world().untilCallback(browser, 'late');
    provider().failing = 500;
    const failed = await browser.request('GET', callback);
    expect(failed.status).to.equal(503);
    expect(failed.text).to.include('The identity provider does not respond');
    const json = await api().admin.client.as(null).get('/auth/oidc/login');
    expect(json.status).to.equal(503);
    expect(json.at('details')).to.deep.equal({ component: 'identity_provider' });
    provider().failing = null;
    api().clock.shift(5_000);
    const done = await signIn(browser, 'late');
    expect(done.status, done.text).to.equal(200);
  });
});
