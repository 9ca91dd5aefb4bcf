import { createHmac, createSecretKey } from 'node:crypto';
import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import { newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import { signToken } from '../../../api/access/tokens.ts';
import { useRunningApi } from '../../support/running-api.ts';

interface Tokens {
  readonly access: string;
  readonly refresh: string;
}

describe('signing in over HTTP', () => {
  const api = useRunningApi();

  const agentWithSecret = async (scopes: readonly string[] = ['tasks:read']) => {
    const { admin } = api();
    const name = newId(Date.now());
    const created = await admin.client.post('/agents', { name, scopes });
    const id = created.textAt('id');
    const given = await admin.client.post(`/agents/${id}/credentials`);
    return { id, secret: given.textAt('agent_secret') };
  };
  const signedIn = async (agent: { id: string; secret: string }): Promise<Tokens> => {
    const answer = await api().admin.client.post(
      '/agents/auth/token',
      { agent_id: agent.id, agent_secret: agent.secret },
      { token: null },
    );
    expect(answer.status, answer.text).to.equal(200);
    return { access: answer.textAt('access_token'), refresh: answer.textAt('refresh_token') };
  };
  const works = async (token: string): Promise<number> =>
    (await api().admin.client.get('/tasks', { token })).status;
  const refresh = (token: string) =>
    api().admin.client.post('/agents/auth/refresh', { refresh_token: token }, { token: null });

  it('issues tokens for a valid secret, even if the id is in capitals', async () => {
    const { id, secret } = await agentWithSecret(['tasks:read', 'runs:read']);
    const body = { agent_id: id.toUpperCase(), agent_secret: secret };
    const answer = await api().admin.client.post('/agents/auth/token', body, { token: null });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.json).to.include({
      token_type: 'bearer',
      expires_in: 3600,
      scope: 'tasks:read runs:read',
    });
    expect(await works(answer.textAt('access_token'))).to.equal(200);
    const claims = JSON.parse(
      Buffer.from(answer.textAt('access_token').split('.')[1] ?? '', 'base64url').toString(),
    ) as Record<string, unknown>;
    expect(claims).to.have.all.keys(
      'sub',
      'type',
      'scope',
      'name',
      'sid',
      'jti',
      'iat',
      'exp',
      'iss',
      'aud',
    );
    expect(claims).to.include({ sub: id, type: 'access' });
  });

  it('does not reveal why it refuses', async () => {
    const { id } = await agentWithSecret();
    const without = await api().signIn([]);
    const texts = new Set<string>();
    for (const body of [
      { agent_id: id, agent_secret: 'wrong' },
      { agent_id: id },
      { agent_id: without.id, agent_secret: 'wrong' },
      { agent_id: without.id },
      { agent_id: newId(0), agent_secret: 'wrong' },
    ]) {
      const answer = await api().admin.client.post('/agents/auth/token', body, { token: null });
      expect(answer.status).to.equal(401);
      expect(answer.header('WWW-Authenticate')).to.equal('Bearer');
      expect(answer.at('details')).to.deep.equal({ required_scopes: [] });
      texts.add(answer.textAt('message'));
    }
    expect(texts.size).to.equal(1);
  });

  it('accepts a new secret and rejects the old one at once', async () => {
    const agent = await agentWithSecret();
    const before = await signedIn(agent);
    expect(await works(before.access)).to.equal(200);
    const given = await api().admin.client.post(`/agents/${agent.id}/credentials`);
    expect(await works(before.access)).to.equal(401);
    expect((await refresh(before.refresh)).status).to.equal(401);
    const after = await signedIn({ id: agent.id, secret: given.textAt('agent_secret') });
    expect(await works(after.access)).to.equal(200);
    const old = { agent_id: agent.id, agent_secret: agent.secret };
    expect((await api().admin.client.post('/agents/auth/token', old)).status).to.equal(401);
  });

  it('accepts a secret chosen by the client', async () => {
    const { id } = await agentWithSecret();
    const agent_secret = 'ein Geheimnis für alle';
    const given = await api().admin.client.post(`/agents/${id}/credentials`, { agent_secret });
    expect(given.at('agent_secret')).to.equal(agent_secret);
    await signedIn({ id, secret: agent_secret });
  });

  it('blocks guessing after ten failures of one agent, even if they are concurrent', async () => {
    const agent = await agentWithSecret();
    const other = await agentWithSecret();
    const body = { agent_id: agent.id, agent_secret: 'wrong' };
    const answers = await Promise.all(
      Array.from({ length: 14 }, () => api().admin.client.post('/agents/auth/token', body)),
    );
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).to.deep.equal([...Array<number>(9).fill(401), ...Array<number>(5).fill(429)]);
    const right = { agent_id: agent.id, agent_secret: agent.secret };
    const refused = await api().admin.client.post('/agents/auth/token', right);
    expect(refused.status).to.equal(429);
    expect(refused.at('error')).to.equal('rate_limit_exceeded');
    expect(Number(refused.header('Retry-After'))).to.be.within(1, 60);
    expect(refused.at('details')).to.include({ limit: 10, window: '60s' });
    expect(Date.parse(refused.textAt('details.reset_at'))).to.be.greaterThan(Date.now());
    await signedIn(other);
  });

  it('issues a new pair for a refresh token, once', async () => {
    const first = await signedIn(await agentWithSecret());
    const answer = await refresh(first.refresh);
    expect(answer.status, answer.text).to.equal(200);
    const second = {
      access: answer.textAt('access_token'),
      refresh: answer.textAt('refresh_token'),
    };
    expect(await works(first.access)).to.equal(200);
    expect(await works(second.access)).to.equal(200);
    expect((await refresh(first.refresh)).status).to.equal(401);
    expect(await works(second.access), 'the session has ended').to.equal(401);
    expect((await refresh(second.refresh)).status).to.equal(401);
  });

  it('issues at most one pair if a refresh token is used twice concurrently', async () => {
    const { refresh: token } = await signedIn(await agentWithSecret());
    const answers = await Promise.all([refresh(token), refresh(token)]);
    expect(answers.filter(({ status }) => status === 200)).to.have.length.of.at.most(1);
    for (const answer of answers) {
      if (answer.status === 200) expect(await works(answer.textAt('access_token'))).to.equal(401);
    }
  });

  it('ends a session by either token, at once and permanently', async () => {
    const agent = await agentWithSecret();
    for (const kind of ['access', 'refresh'] as const) {
      const tokens = await signedIn(agent);
      expect(await works(tokens.access)).to.equal(200);
      const body = kind === 'access' ? { token: tokens.access } : { refresh_token: tokens.refresh };
      for (let times = 0; times < 2; times += 1) {
        const revoked = await api().admin.client.post('/agents/auth/revoke', body, { token: null });
        expect(revoked.status).to.equal(200);
      }
      expect(await works(tokens.access)).to.equal(401);
      expect((await refresh(tokens.refresh)).status).to.equal(401);
    }
  });

  it('answers the revocation of an unknown token like any other', async () => {
    const { client } = api().admin;
    for (const token of ['nonsense', 'a.b.c', forged(baseClaims(), 'HS256', 'x'.repeat(32))]) {
      expect(
        (await client.post('/agents/auth/revoke', { token }, { token: null })).status,
      ).to.equal(200);
    }
    expect((await client.post('/agents/auth/revoke', {}, { token: null })).status).to.equal(400);
  });

  it('refuses the tokens of a removed agent at once', async () => {
    const agent = await agentWithSecret();
    const tokens = await signedIn(agent);
    expect(await works(tokens.access)).to.equal(200);
    await api().admin.client.delete(`/agents/${agent.id}`);
    expect(await works(tokens.access)).to.equal(401);
    expect((await refresh(tokens.refresh)).status).to.equal(401);
    const body = { agent_id: agent.id, agent_secret: agent.secret };
    expect((await api().admin.client.post('/agents/auth/token', body)).status).to.equal(401);
  });

  it("applies the agent's current scopes", async () => {
    const agent = await agentWithSecret(['tasks:read']);
    const { access } = await signedIn(agent);
    expect(await works(access)).to.equal(200);
    await api().admin.client.put(`/agents/${agent.id}`, { scopes: ['runs:read'] });
    const refused = await api().admin.client.get('/tasks', { token: access });
    expect(refused.status).to.equal(403);
    expect(refused.at('details')).to.deep.equal({
      required_scopes: ['tasks:read'],
      granted_scopes: ['runs:read'],
    });
    await api().admin.client.put(`/agents/${agent.id}`, { scopes: ['admin'] });
    expect(await works(access)).to.equal(200);
  });

  it('refuses an expired token, even if it has just accepted it', async () => {
    const agent = await agentWithSecret();
    const { access, refresh: token } = await signedIn(agent);
    expect(await works(access)).to.equal(200);
    api().clock.shift(3_600_000);
    expect(await works(access)).to.equal(401);
    expect((await refresh(token)).status).to.equal(200);
    const late = await signedIn(agent);
    api().clock.shift(86_400_000);
    expect((await refresh(late.refresh)).status).to.equal(401);
  });

  it('still accepts tokens signed with the previous key', async () => {
    const { id } = await api().signIn(['tasks:read']);
    const previous = createSecretKey(Buffer.alloc(32, 8));
    const now = api().clock.now();
    const claims = { ...baseClaims(), sub: id, sid: newId(now) };
    await openSession(claims.sid, id);
    const token = signToken(claims, 60, now, previous);
    expect(await works(token)).to.equal(401);
    Object.assign(api().settings.tokenKeys, { previousJwtKey: previous });
    expect(await works(token)).to.equal(200);
    Object.assign(api().settings.tokenKeys, { previousJwtKey: null });
  });

  describe('rejects', () => {
    const claimsOf = async (changes: Record<string, unknown> = {}) => {
      const { id } = await api().signIn(['tasks:read']);
      const sid = newId(api().clock.now());
      await openSession(sid, id);
      return { ...baseClaims(), sub: id, sid, ...changes };
    };
    const key = '\x07'.repeat(32);
    const cases: readonly (readonly [string, () => Promise<string>])[] = [
      ['a foreign signature', async () => forged(await claimsOf(), 'HS256', 'x'.repeat(32))],
      ['alg none', async () => forged(await claimsOf(), 'none', null)],
      ['another algorithm', async () => forged(await claimsOf(), 'HS384', key)],
      ['a refresh token', async () => forged(await claimsOf({ type: 'refresh' }), 'HS256', key)],
      ['another issuer', async () => forged(await claimsOf({ iss: 'elsewhere' }), 'HS256', key)],
      ['another audience', async () => forged(await claimsOf({ aud: 'elsewhere' }), 'HS256', key)],
      ['no expiry', async () => forged(await claimsOf({ exp: undefined }), 'HS256', key)],
      [
        'an expiry that is not a number',
        async () => forged(await claimsOf({ exp: 'never' }), 'HS256', key),
      ],
      ['no session', async () => forged(await claimsOf({ sid: undefined }), 'HS256', key)],
      ['an unknown session', async () => forged(await claimsOf({ sid: newId(0) }), 'HS256', key)],
      [
        'the session of another agent',
        async () => forged(await claimsOf({ sub: api().admin.id }), 'HS256', key),
      ],
      ['an unknown agent', async () => forged(await claimsOf({ sub: newId(0) }), 'HS256', key)],
      ['no claims', async () => signed(part({ alg: 'HS256', typ: 'JWT' }), part(null), key)],
      [
        'an unknown critical header',
        async () => signed(part({ alg: 'HS256', crit: ['x'], x: 1 }), part(await claimsOf()), key),
      ],
      ['nonsense', async () => 'nonsense'],
      [
        'a payload that is not JSON',
        async () => `${part({ alg: 'HS256', typ: 'JWT' })}.bm9wZQ.c2ln`,
      ],
      ['a header that is not JSON', async () => 'bm9wZQ.bm9wZQ.c2ln'],
      ['three empty parts', async () => '..'],
    ];
    it('none of these claims if they are complete and correctly signed', async () => {
      expect(await works(forged(await claimsOf(), 'HS256', key))).to.equal(200);
    });
    for (const [what, make] of cases) {
      it(what, async () => {
        const answer = await api().admin.client.get('/tasks', { token: await make() });
        expect(answer.status, answer.text).to.equal(401);
        expect(answer.at('details')).to.deep.equal({ required_scopes: ['tasks:read'] });
      });
    }
  });

  it('accepts unusual forms of the header, or refuses them', async () => {
    const { client } = await api().signIn(['tasks:read']);
    const with_ = async (authorization: string): Promise<number> =>
      (await client.get('/tasks', { token: null, headers: { authorization } })).status;
    for (const good of [`bearer ${client.token}`, `BEARER   ${client.token}  `]) {
      expect(await with_(good), good).to.equal(200);
    }
    for (const bad of [
      '',
      'Bearer',
      'Bearer ',
      `Bearer ${client.token} x`,
      `Basic ${client.token}`,
      String(client.token),
      `Bearer,${client.token}`,
      `Bearer ${'x'.repeat(8000)}`,
    ]) {
      expect(await with_(bad), bad).to.equal(401);
    }
  });

  const openSession = (sid: string, agent_id: string): Promise<void> =>
    api().append(streams.session(sid), [
      {
        type: 'SessionStarted',
        data: {
          agent_id,
          refresh_id: newId(0),
          expires_at: toIso(api().clock.now() + 86_400_000),
          credentials_revision: null,
        },
      },
    ]);
  const baseClaims = () => {
    const now = Math.floor(api().clock.now() / 1000);
    const service = 'task-scheduling-service';
    const times = { iat: now, exp: now + 600, iss: service, aud: service };
    const ids = { sub: newId(0), sid: newId(0), jti: newId(0) };
    return { ...ids, type: 'access' as const, scope: '', name: 'x', ...times };
  };
});

describe('signing in without a secret', () => {
  const api = useRunningApi({ allowSecretless: true });

  it('is possible only for agents without credentials', async () => {
    const { id } = await api().signIn(['tasks:read']);
    const { client } = api().admin;
    const token = await client.post('/agents/auth/token', { agent_id: id });
    expect(token.status, token.text).to.equal(200);
    expect((await client.get('/tasks', { token: token.textAt('access_token') })).status).to.equal(
      200,
    );
    const guessed = { agent_id: id, agent_secret: 'something' };
    expect((await client.post('/agents/auth/token', guessed)).status).to.equal(401);
    await client.post(`/agents/${id}/credentials`);
    expect((await client.post('/agents/auth/token', { agent_id: id })).status).to.equal(401);
    expect((await client.post('/agents/auth/token', { agent_id: newId(0) })).status).to.equal(401);
  });
});

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A hand-made token. @param key null: no signature */
function forged(claims: object, alg: string, key: string | null): string {
  const parts = [part({ alg, typ: 'JWT' }), part(claims)] as const;
  return key === null ? `${parts.join('.')}.` : signed(...parts, key, `sha${alg.slice(2)}`);
}

/** A header and a payload with their signature. */
function signed(header: string, payload: string, key: string, hash = 'sha256'): string {
  const hmac = createHmac(hash, Buffer.from(key, 'latin1')).update(`${header}.${payload}`);
  return `${header}.${payload}.${hmac.digest('base64url')}`;
}
