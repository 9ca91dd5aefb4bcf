import { createSecretKey } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import { newId } from '../../../domain/ids.ts';
import { Authentication } from '../../../api/access/authentication.ts';
import { signToken } from '../../../api/access/tokens.ts';
import type { ApiDependencies } from '../../../api/dependencies.ts';
import type { HttpError } from '../../../api/errors.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

describe('the caller of a request', () => {
  const jwtKey = createSecretKey(Buffer.alloc(32, 7));
  const setUp = () => {
    const clock = new VirtualClock(1_800_000_000_000);
    const [sub, sid] = [newId(1), newId(2)];
    const agent = {
      status: 'registered',
      name: 'a',
      scopes: ['tasks:read'],
      sessions_revision: null,
      disabled: null,
    };
    const session = {
      status: 'open',
      agent_id: sub,
      expires_at: toIso(clock.now() + 86_400_000),
      credentials_revision: null,
    };
    const lookups = { count: 0 };
    const sessions = {
      get: () => {
        lookups.count += 1;
        return { state: { ...session } };
      },
    };
    const dependencies = {
      settings: { tokenKeys: { jwtKey, previousJwtKey: null } },
      clock,
      agents: { get: () => ({ state: agent }) },
      sessions,
    } as unknown as ApiDependencies;
    const authentication = new Authentication(dependencies, null);
    const ids = { sub, sid, jti: newId(3) };
    const claims = { ...ids, type: 'access' as const, scope: '', name: 'a' };
    const authorization = `Bearer ${signToken(claims, 3600, clock.now(), jwtKey)}`;
    const request = { headers: { authorization } } as IncomingMessage;
    return { authentication, request, session, lookups, agentId: sub };
  };

  it('is looked up once for the rate limit and the endpoint', async () => {
    const { authentication, request, lookups, agentId } = setUp();
    const counted = await authentication.callerOf(request);
    const admitted = await authentication.authenticate(request, ['tasks:read']);
    expect(counted?.agentId).to.equal(agentId);
    expect(admitted).to.equal(counted);
    expect(lookups.count).to.equal(1);
  });

  it('needs the scope of the endpoint even after the rate limit has identified it', async () => {
    const { authentication, request } = setUp();
    await authentication.callerOf(request);
    expect(await codeOf(() => authentication.authenticate(request, ['ops']))).to.equal('forbidden');
  });

  it('is looked up again by a response that authenticates again', async () => {
    const { authentication, request, session } = setUp();
    await authentication.callerOf(request);
    await authentication.authenticate(request, []);
    session.status = 'ended';
    expect(await codeOf(() => authentication.authenticate(request, []))).to.equal('unauthorized');
  });

  /** The code of the error that an authentication throws or rejects with. */
  const codeOf = async (authenticate: () => unknown): Promise<unknown> => {
    try {
      await authenticate();
    } catch (error) {
      return (error as HttpError).code;
    }
    return undefined;
  };
});
