import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { exportSPKI, generateKeyPair } from 'jose';
import { SystemClock } from '../../../app/clock.ts';
import { identityProviderOf } from '../../../api/people/identity-provider.ts';
import { AUDIENCE } from '../../support/identity-provider.ts';
import { usePeopleWorld } from './people-world.ts';

const now = () => Math.floor(Date.now() / 1000);
const base64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('an access token of the identity provider', () => {
  const world = usePeopleWorld();
  const provider = () => world().provider;
  const operators = { groups: ['operators'] };
  const get = (token: string, path = '/tasks') => world().api.admin.client.as(token).get(path);
  const expectRefused = async (token: string, words: RegExp): Promise<void> => {
    const answer = await get(token);
    expect(answer.status, answer.text).to.equal(401);
    expect(answer.textAt('message')).to.match(words);
  };

  it('of a client grants exactly what its claims give', async () => {
    const token = await provider().clientToken();
    expect((await get(token)).status).to.equal(200);
    const refused = await world()
      .api.admin.client.as(token)
      .post('/agents', { name: 'x', scopes: [] });
    expect(refused.status).to.equal(403);
    expect(refused.at('details.granted_scopes')).to.deep.equal(['ops', 'runs:read', 'tasks:read']);
  });

  it('acts as the same agent as the person', async () => {
    const first = await get(
      await provider().token({ sub: 'ada', ...operators, name: 'Ada' }),
      '/auth/session',
    );
    const second = await get(
      await provider().token({ sub: 'ada', groups: ['authors'] }),
      '/auth/session',
    );
    expect(first.textAt('agent.name')).to.equal('Ada');
    expect(second.textAt('agent.id')).to.equal(first.textAt('agent.id'));
    expect(second.at('agent.scopes')).to.deep.equal(['tasks:read', 'tasks:write']);
  });

  it('grants no more than the latest claims and its own claims', async () => {
    const rich = await provider().token({
      sub: 'grace',
      groups: ['operators', 'authors'],
      iat: now() - 20,
    });
    expect((await get(rich)).status).to.equal(200);
    const poor = await provider().token({ sub: 'grace', groups: ['authors'], iat: now() - 10 });
    expect((await get(poor, '/runs')).status).to.equal(403);
    // The older token has lost it too, even in a process that has not seen it before.
    expect((await get(rich, '/runs')).status).to.equal(403);
    const alike = await provider().token({ sub: 'grace', groups: ['operators'], iat: now() - 15 });
    const session = await get(alike, '/auth/session');
    expect(session.at('agent.scopes')).to.deep.equal(['tasks:read']);
  });

  it('stops working when its agent is removed', async () => {
    const token = await provider().token({ sub: 'mallory', ...operators, iat: now() - 5 });
    const id = (await get(token, '/auth/session')).textAt('agent.id');
    await world().api.admin.client.delete(`/agents/${id}`);
    await expectRefused(token, /changed or removed/);
    world().api.clock.shift(2_000);
    const later = await provider().token({ sub: 'mallory', ...operators, iat: now() + 2 });
    expect((await get(later)).status).to.equal(200);
    world().api.clock.shift(-2_000);
  });

  it('whose claims give no scope is rejected', async () => {
    const answer = await get(await provider().token({ sub: 'eve', groups: ['strangers'] }));
    expect(answer.status).to.equal(403);
    expect(answer.textAt('message')).to.equal('the claims of the token give no scope');
  });

  it('is rejected if it has another audience or issuer, is expired or too early, or lacks a claim', async () => {
    const claims = { sub: 'ada', ...operators };
    const { issuer } = provider();
    await expectRefused(await provider().token({ ...claims, aud: 'other' }), /"aud"/);
    await expectRefused(
      await provider().token({ ...claims, aud: ['other', 'scheduler'] }),
      /"aud"/,
    );
    await expectRefused(await provider().token({ ...claims, iss: `${issuer}/` }), /invalid/);
    await expectRefused(
      await provider().token({ ...claims, iss: 'https://evil.example' }),
      /invalid/,
    );
    await expectRefused(await provider().token({ ...claims, exp: now() - 31 }), /"exp"/);
    await expectRefused(await provider().token({ ...claims, nbf: now() + 60 }), /"nbf"/);
    await expectRefused(await provider().token({ ...operators }), /"sub"/);
    await expectRefused(await provider().token({ ...claims, nonce: 'n' }), /is an ID token/);
    for (const missing of ['exp', 'iat']) {
      const token = await provider().token({ ...claims, [missing]: undefined });
      await expectRefused(token, new RegExp(`"${missing}"`));
    }
  });

  it('may come from a clock that differs by a few seconds', async () => {
    const claims = { sub: 'ada', ...operators };
    expect((await get(await provider().token({ ...claims, exp: now() - 5 }))).status).to.equal(200);
    expect((await get(await provider().token({ ...claims, nbf: now() + 10 }))).status).to.equal(
      200,
    );
  });

  it('expires even if it is cached', async () => {
    const token = await provider().token({ sub: 'ada', ...operators });
    expect((await get(token)).status).to.equal(200);
    world().api.clock.shift(631_000);
    await expectRefused(token, /has expired/);
    world().api.clock.shift(-631_000);
  });

  it('is rejected without a signature, or signed with the public key as a shared secret', async () => {
    const payload = { iss: provider().issuer, aud: AUDIENCE, sub: 'ada', ...operators };
    const claims = base64({ ...payload, iat: now(), exp: now() + 600 });
    for (const alg of ['none', 'None', '']) {
      await expectRefused(`${base64({ alg })}.${claims}.`, /invalid/);
    }
    const pem = await exportSPKI(provider().key.publicKey);
    for (const secret of [pem, pem.trim(), JSON.stringify(provider().key.jwk.n)]) {
      const head = base64({ alg: 'HS256', kid: provider().key.kid });
      const mac = createHmac('sha256', secret).update(`${head}.${claims}`).digest('base64url');
      await expectRefused(`${head}.${claims}.${mac}`, /invalid/);
    }
  });

  it('is rejected if its header contains a key or its claims were changed', async () => {
    const claims = { sub: 'ada', ...operators };
    const own = await generateKeyPair('RS256', { extractable: true });
    const { privateKey: key } = own;
    const header = { jku: 'https://evil.example/keys', jwk: { kty: 'RSA', n: 'x', e: 'AQAB' } };
    await expectRefused(await provider().token(claims, { key, header }), /invalid/);
    const forged = (await provider().token(claims)).split('.');
    forged[1] = base64({ iss: provider().issuer, aud: AUDIENCE, sub: 'root', groups: ['admins'] });
    await expectRefused(forged.join('.'), /invalid/);
  });

  it('signed with a new key is accepted at once, and with a withdrawn key no longer', async () => {
    const claims = { sub: 'ada', ...operators };
    const { privateKey: old, kid } = provider().key;
    await provider().serve(world().api.url);
    expect((await get(await provider().token(claims))).status).to.equal(200);
    const late = await provider().token(claims, { key: old, header: { kid } });
    await expectRefused(late, /invalid/);
  });

  it('of an unknown key causes at most one request to the provider in thirty seconds', async () => {
    const failures = { failed() {}, worked() {}, serverProblem() {} };
    const settings = provider().settings();
    const client = identityProviderOf(settings, new SystemClock(), failures as never);
    const keys = await client?.keys();
    const find = async (kid: string): Promise<string> => {
      try {
        await keys?.({ alg: 'RS256', kid }, { payload: '', signature: '' });
        return 'found';
      } catch (error) {
        return (error as Error).name;
      }
    };
    expect(await find(provider().key.kid)).to.equal('found');
    const asked = () => provider().requests.filter((path) => path === '/jwks').length;
    const before = asked();
    for (const kid of ['a', 'b', 'c']) expect(await find(kid)).to.equal('JWKSNoMatchingKey');
    expect(asked()).to.equal(before);
  });

  it('gets 503 while the keys are unknown, without a request to the provider each time', async () => {
    const failures = { failed() {}, worked() {}, serverProblem() {} };
    const client = identityProviderOf(provider().settings(), new SystemClock(), failures as never);
    provider().failing = 500;
    const before = provider().requests.length;
    for (let n = 0; n < 5; n += 1) {
      const error = await client?.keys().then(
        () => null,
        (thrown: unknown) => thrown,
      );
      expect(error).to.include({ code: 'unavailable' });
    }
    expect(provider().requests.length).to.equal(before + 1);
    provider().failing = null;
  });
});

describe('without SVC_OIDC_AUDIENCE, an access token of the identity provider', () => {
  const world = usePeopleWorld();
  before(() => Object.assign(world().api.settings.people ?? {}, { audience: undefined }));

  it('is rejected, and the response names the setting', async () => {
    const token = await world().provider.token({ sub: 'ada', groups: ['operators'] });
    const answer = await world().api.admin.client.as(token).get('/tasks');
    expect(answer.status).to.equal(401);
    expect(answer.textAt('message')).to.include('SVC_OIDC_AUDIENCE is not set');
  });
});
