import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { withinOneWindow } from '../../support/counting-window.ts';
import { found } from '../../support/signals.ts';
import { useWorkerWorld } from '../worker/worker-world.ts';
import { attemptAll, signIn, taskOf, unexpected, type SignedInAgent } from './attackers.ts';

const noSuch = '00000000-0000-7000-8000-000000000000';
const day = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' };

describe('the OWASP API Security Top 10 of 2023, access', function () {
  this.timeout(60_000);
  const world = useWorkerWorld({ SVC_WORKER_CONCURRENCY: '8' });
  const echo = { id: 'said', uses: 'echo', with: { text: 'only for the victim' } };

  describe('API1, broken object level authorization', () => {
    let victim: SignedInAgent;
    let attacker: SignedInAgent;
    let task: string;
    let run: string;
    before(async () => {
      victim = await signIn(world(), ['tasks:read', 'tasks:write', 'runs:read']);
      const scopes = ['tasks:read:own', 'runs:read:own', 'tasks:write', 'events:publish'];
      attacker = await signIn(world(), [...scopes, 'approvals:write', 'jobs:work']);
      task = (await victim.client.post('/tasks', taskOf(victim.id, echo))).textAt('id');
      const ran = await victim.client.post(`/tasks/${task}/run_now?wait=20`);
      run = ran.textAt('details.run_id');
    });

    it('shows nothing of the task or the run of another agent by its id', async () => {
      const answers = await attemptAll(attacker.client, [
        [`GET /tasks/${task}`],
        [`GET /tasks/${task}?as_of=2030-01-01T00:00:00Z`],
        [`GET /tasks/${task}/history`],
        [`GET /tasks/${task}/explain?at=2026-01-01T00:00:00Z`],
        [`GET /tasks/${task}/backfills`],
        [`GET /tasks/${task}/live`],
        [`GET /task/${task}/latest`],
        [`GET /task/${task}/stats`],
        [`GET /runs/${run}`],
        [`GET /runs/${run}/history`],
        [`GET /streams/run-${run}`],
        [`GET /runs/${run}/artifacts/${'0'.repeat(64)}`],
        [`GET /agents/${victim.id}/keys`],
      ]);
      expect(unexpected(answers, [403, 404])).to.deep.equal([]);
      for (const { text } of answers.values()) expect(text).to.not.contain('only for the victim');
    });

    it('lets nobody change, run or cancel them', async () => {
      const before = await victim.client.get(`/tasks/${task}`);
      const answers = await attemptAll(attacker.client, [
        [`PUT /tasks/${task}`, { title: 'mine' }],
        [`PUT /tasks/${task}`, { created_by: attacker.id }],
        [`POST /tasks/${task}/pause`],
        [`POST /tasks/${task}/cancel`],
        [`POST /tasks/${task}/run_now`, {}],
        [`POST /tasks/${task}/snooze`, { delay_seconds: 60 }],
        [`POST /tasks/${task}/backfill`, day],
        [`POST /runs/${run}/cancel`],
        [`POST /runs/${run}/retry`, {}],
        [`POST /agents/${victim.id}/keys`, { name: 'mine' }],
        [`POST /agents/${victim.id}/credentials`, {}],
      ]);
      expect(unexpected(answers, [403, 404])).to.deep.equal([]);
      const after = await victim.client.get(`/tasks/${task}`);
      expect(after.header('ETag')).to.equal(before.header('ETag'));
    });

    it('accepts neither another agent in a body nor another task in a step', async () => {
      const source = { topic: 'a', payload: {}, source_agent_id: victim.id };
      const answers = await attemptAll(attacker.client, [
        ['POST /tasks', taskOf(victim.id, echo)],
        ['POST /events', source],
      ]);
      expect(unexpected(answers, [403])).to.deep.equal([]);
      const step = { uses: 'tasks.run', with: { task_id: task } };
      const own = await attacker.client.post('/tasks', taskOf(attacker.id, step));
      const ran = await attacker.client.post(`/tasks/${own.textAt('id')}/run_now?wait=20`);
      expect(ran.at('details.run.state')).to.equal('failed');
      const runs = await victim.client.get(`/runs?task_id=${task}`);
      expect((runs.at('items') as readonly unknown[]).length).to.equal(1);
    });
  });

  describe('API2, broken authentication', () => {
    it('accepts only tokens that it has signed', async () => {
      const { client, id } = await signIn(world(), ['tasks:read']);
      const [, payload = '', signature = ''] = (client.token ?? '').split('.');
      const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
      const admin = encode({ ...claims, sub: world().adminId, scope: 'admin' });
      const signed = (header: object, body: string, key: string): string => {
        const text = `${encode(header)}.${body}`;
        return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
      };
      const forged = [
        `${encode({ alg: 'none', typ: 'JWT' })}.${admin}.`,
        `${encode({ alg: 'nOnE', typ: 'JWT' })}.${admin}.${signature}`,
        `${encode({ alg: 'HS256', typ: 'JWT' })}.${admin}.${signature}`,
        signed({ alg: 'HS256', typ: 'JWT' }, admin, ''),
        signed({ alg: 'HS256', typ: 'JWT', kid: '../../../../dev/null' }, admin, ''),
        signed({ alg: 'HS256', typ: 'JWT', jwk: { kty: 'oct', k: 'YQ' } }, admin, 'a'),
        signed({ alg: 'HS256', typ: 'JWT', crit: ['exp'] }, admin, 'secret'),
        signed({ alg: 'RS256', typ: 'JWT' }, admin, 'public key'),
        `svck_${'A'.repeat(43)}`,
        id,
      ];
      for (const token of forged) {
        const answer = await client.as(token).get('/agents');
        expect([answer.status, token.slice(0, 30)]).to.deep.equal([401, token.slice(0, 30)]);
      }
    });

    it('accepts no token of another kind, and none outside the header', async () => {
      const { client, id, secret } = await signIn(world(), ['tasks:read']);
      const tokens = await client.post('/agents/auth/token', {
        agent_id: id,
        agent_secret: secret,
      });
      const refresh = tokens.textAt('refresh_token');
      expect((await client.as(refresh).get('/tasks')).status).to.equal(401);
      const again = await client.post('/agents/auth/refresh', { refresh_token: client.token });
      expect(again.status).to.equal(401);
      const open = client.as(null);
      const inQuery = await open.get(`/tasks?access_token=${client.token ?? ''}`);
      expect(inQuery.status).to.equal(401);
      const headers = { cookie: `access_token=${client.token ?? ''}` };
      expect((await open.get('/tasks', { headers })).status).to.equal(401);
    });

    it('counts failed guesses over all ways to sign in together', async () => {
      const statuses = await withinOneWindow(60_000, async () => {
        const { client, id, secret } = await signIn(world(), []);
        const open = client.as(null);
        const guess = async (agent_secret: string): Promise<number> =>
          (await open.post('/agents/auth/token', { agent_id: id, agent_secret })).status;
        const oauth = async (given: string): Promise<number> => {
          const authorization = `Basic ${Buffer.from(`${id}:${given}`).toString('base64')}`;
          const form = { 'content-type': 'application/x-www-form-urlencoded', authorization };
          const raw = 'grant_type=client_credentials';
          return (await open.send('POST', '/oauth/token', { raw, headers: form })).status;
        };
        const guessed: number[] = [];
        for (let n = 0; n < 5; n += 1) {
          guessed.push(await guess(`a wrong secret ${n}`), await oauth(`a wrong secret ${n}`));
        }
        return [...guessed, await guess(secret), await oauth(secret)];
      });
      expect(statuses).to.deep.equal([...Array<number>(9).fill(401), 429, 429, 429]);
    });
  });

  describe('API3, broken object property level authorization', () => {
    it('accepts no property that a caller may not set', async () => {
      const lead = await signIn(world(), ['namespace:admin', 'tasks:read', 'tasks:write']);
      const member = { name: 'made by force', scopes: ['tasks:read'] };
      const task = taskOf(lead.id, echo);
      const refused = await attemptAll(lead.client, [
        ['POST /agents', { ...member, id: noSuch }],
        ['POST /agents', { ...member, disabled: null }],
        ['POST /agents', { ...member, agent_secret: 'chosen by the attacker' }],
        ['POST /tasks', { ...task, id: noSuch }],
        ['POST /tasks', { ...task, status: 'canceled' }],
        ['POST /tasks', { ...task, namespace: 'other' }],
        ['POST /tasks', { ...task, created_at: '2020-01-01T00:00:00Z' }],
        ['POST /tasks', { ...task, __proto__: null, constructor: { prototype: { admin: true } } }],
        [`PUT /agents/${lead.id}`, { namespace: 'other' }],
        ['PUT /namespaces/default', { name: 'other' }],
        ['PUT /namespaces/default', { quota_bounds: {} }],
        [`POST /agents/${lead.id}/keys`, { name: 'k', agent_id: world().adminId }],
        [`POST /agents/${lead.id}/keys`, { name: 'k', scopes: ['admin'] }],
      ]);
      expect(unexpected(refused, [400])).to.deep.equal([]);
      const forbidden = await attemptAll(lead.client, [
        ['POST /agents', { ...member, scopes: ['admin'] }],
        [`PUT /agents/${lead.id}`, { scopes: ['admin'] }],
        ['POST /tasks', { ...task, created_by: world().adminId }],
        ['PUT /namespaces/default', { quotas: { weight: 100 } }],
      ]);
      expect(unexpected(forbidden, [403])).to.deep.equal([]);
    });

    it('never shows a property that nobody may read', async () => {
      const { id, secret, client } = await signIn(world(), ['tasks:read']);
      const key = (await client.post(`/agents/${id}/keys`, { name: 'deploy' })).textAt('key');
      const { admin } = world();
      const answers = await attemptAll(admin, [
        ['GET /agents?limit=200'],
        [`GET /agents/${id}`],
        [`GET /agents/${id}/history`],
        [`GET /agents/${id}/keys`],
        [`GET /streams/agent-${id}`],
        ['GET /audit?limit=200'],
      ]);
      for (const [request, { status, text }] of answers) {
        expect([status, request]).to.deep.equal([200, request]);
        expect(text).to.not.contain(secret).and.to.not.contain(key);
        expect(text).to.not.match(/\$scrypt|"(secret_hash|key_hash|hash|salt)":"[^*"]/);
      }
    });
  });

  describe('API5, broken function level authorization', () => {
    it('gives no access to functions by another method, spelling or header', async () => {
      const { client } = await signIn(world(), ['tasks:read']);
      const paths = [
        ...['/operations/hold', '/operations/hold/', '//operations/hold', '/OPERATIONS/HOLD'],
        ...['/operations/./hold', '/tasks/../operations/hold', '/operations%2fhold'],
        ...['/operations/hold;x=1', '/operations/hold%00', '/%6fperations/hold'],
      ];
      const body = { reason: 'attack' };
      for (const path of paths) {
        const { status } = await client.post(path, body);
        expect([400, 403, 404], path).to.include(status);
      }
      const override = {
        'x-http-method-override': 'POST',
        'x-method-override': 'POST',
        'x-original-url': '/operations/hold',
        'x-rewrite-url': '/operations/hold',
        'x-forwarded-for': '127.0.0.1',
      };
      await client.send('GET', '/tasks?limit=1', { headers: override });
      expect((await world().admin.get('/operations')).at('held')).to.equal(false);
    });

    it('reserves the whole service for admins, even against the administrator of a namespace', async () => {
      await world().admin.post('/namespaces', { name: 'owasp' });
      const scopes = ['namespace:admin', 'tasks:read', 'runs:read', 'audit:read', 'secrets:write'];
      const { client } = await signIn(world(), scopes, { namespace: 'owasp' });
      const answers = await attemptAll(client, [
        ['POST /namespaces', { name: 'taken' }],
        ['DELETE /namespaces/owasp'],
        ['DELETE /namespaces/default'],
        ['PUT /namespaces/default', { description: null }],
        ['POST /secrets/rotate-key'],
        ['POST /operations/hold', { reason: 'attack' }],
        ['POST /projections/tasks/rebuild', {}],
        ['POST /replays', { name: 'a', until: '2026-01-01T00:00:00Z' }],
        ['DELETE /stream/cleanup'],
        ['GET /streams/admins'],
        ['GET /tasks?namespace=default'],
        [`POST /agents/${world().adminId}/disable`],
      ]);
      expect(unexpected(answers, [403, 404])).to.deep.equal([]);
    });
  });

  describe('API6, unrestricted access to sensitive business flows', () => {
    it('accepts one decision on an approval, from its approvers only', async () => {
      const asker = await signIn(world(), [
        'tasks:write',
        'tasks:read',
        'runs:read',
        'approvals:write',
      ]);
      const approver = await signIn(world(), ['approvals:write', 'tasks:read']);
      const pay = { uses: 'approval', with: { message: 'Pay?', approvers: [approver.id] } };
      const task = await asker.client.post('/tasks', taskOf(asker.id, pay));
      const ran = await asker.client.post(`/tasks/${task.textAt('id')}/run_now`);
      const run = ran.textAt('details.run_id');
      const approval = await found(async () => {
        const { json } = await approver.client.get(`/approvals?run_id=${run}`);
        return (json['items'] as readonly { readonly id: string }[])[0]?.id;
      });
      const own = await asker.client.post(`/approvals/${approval}/approve`, {});
      expect(own.status, own.text).to.equal(403);
      const decisions = await Promise.all(
        Array.from({ length: 10 }, (_, n) =>
          approver.client.post(`/approvals/${approval}/${n % 2 === 0 ? 'approve' : 'reject'}`, {}),
        ),
      );
      expect(decisions.filter(({ status }) => status === 200)).to.have.length(1);
    });

    it('creates one run for a command that is repeated many times at once', async () => {
      const { id, client } = await signIn(world(), ['tasks:write', 'runs:read']);
      const task = (await client.post('/tasks', taskOf(id, echo))).textAt('id');
      const headers = { 'idempotency-key': 'pay once' };
      await Promise.all(
        Array.from({ length: 20 }, () => client.post(`/tasks/${task}/run_now`, {}, { headers })),
      );
      const runs = await found(async () => {
        const { json } = await client.get(`/runs?task_id=${task}`);
        const items = json['items'] as readonly unknown[];
        return items.length > 0 ? items : undefined;
      });
      expect(runs).to.have.length(1);
    });
  });
});
