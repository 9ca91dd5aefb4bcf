import { expect } from 'chai';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import { cpuMs } from '../../support/cpu-time.ts';
import { found } from '../../support/signals.ts';
import { useWorkerWorld } from '../worker/worker-world.ts';
import { attemptAll, signIn, taskOf, unexpected } from './attackers.ts';
import { HostileServer } from './hostile-server.ts';

const noSuch = '00000000-0000-7000-8000-000000000000';

describe('the OWASP API Security Top 10 of 2023, the service itself', function () {
  this.timeout(60_000);
  const world = useWorkerWorld({ SVC_WORKER_CONCURRENCY: '8' });
  const echo = { id: 'said', uses: 'echo', with: { text: 'only for the victim' } };

  describe('API4, unrestricted resource consumption', () => {
    it('quickly rejects requests that would cost too much', async () => {
      const { id, client } = await signIn(world(), ['tasks:read', 'tasks:write', 'events:publish']);
      const steps = Array.from({ length: 20_000 }, () => ({ uses: 'echo', with: {} }));
      const preview = { schedule_kind: 'cron', schedule_expr: '* * * * * *' };
      const event = { topic: 'a', source_agent_id: id };
      const attempts = [
        ['POST /tasks', taskOf(id, ...steps)],
        ['POST /tasks', taskOf(id, { ...echo, timeout_seconds: 1e12 })],
        ['POST /tasks', { ...taskOf(id, echo), max_retries: 1e9 }],
        ['POST /schedules/preview', { ...preview, count: 1e9 }],
        ['POST /events', { ...event, payload: { text: 'x'.repeat(300_000) } }],
        ['POST /events', { ...event, payload: { text: 'x'.repeat(3_000_000) } }],
        ['GET /tasks?limit=1000000000'],
        ['GET /tasks?offset=1e300'],
      ] as const;
      const spent = await cpuMs(async () =>
        expect(unexpected(await attemptAll(client, attempts), [400, 413])).to.deep.equal([]),
      );
      expect(spent).to.be.lessThan(20_000);
      const deep = `{"a":`.repeat(50_000) + '1' + '}'.repeat(50_000);
      const headers = { 'content-type': 'application/json' };
      const nested = await client.send('POST', '/events', { raw: deep, headers });
      expect(nested.status).to.equal(400);
      expect((await client.get('/health/ready')).status).to.equal(200);
    });

    it('limits the work and the depth of an expression in a run', async () => {
      const { id, client } = await signIn(world(), ['tasks:write', 'runs:read']);
      for (const deep of ['!'.repeat(100_000), '('.repeat(50_000), 'a[?'.repeat(30_000)]) {
        const step = { uses: 'echo', with: `\${${deep}a}` };
        const task = await client.post('/tasks', taskOf(id, step));
        if (task.status === 400) continue;
        const ran = await client.post(`/tasks/${task.textAt('id')}/run_now?wait=20`);
        expect(ran.at('details.run.state')).to.equal('failed');
      }
      const doubled = Array.from({ length: 40 }, (_, n) => ({
        id: `s${n}`,
        uses: 'echo',
        with: n === 0 ? 'xxxxxxxx' : `\${join('', [steps.s${n - 1}, steps.s${n - 1}])}`,
      }));
      const made = await client.post('/tasks', taskOf(id, ...doubled));
      expect(made.status, made.text).to.equal(201);
      const ran = await client.post(`/tasks/${made.textAt('id')}/run_now?wait=30`);
      expect(ran.text.length).to.be.lessThan(2_000_000);
      expect((await client.get('/health/ready')).status).to.equal(200);
    });
  });

  describe('API7, server side request forgery', () => {
    it('sends no request of a step to a private address, in any notation', async () => {
      const server = await HostileServer.start();
      try {
        const { id, client } = await signIn(world(), ['tasks:write', 'runs:read']);
        const hosts = ['localhost', '127.1', '0177.0.0.1', '[::ffff:7f00:1]', '①②⑦.0.0.1', '0'];
        for (const host of hosts) {
          const url = `http://${host}:${server.port}/`;
          const steps = [url, '${params.url}'].map((each) => ({
            uses: 'http.request',
            with: { url: each },
            on_error: 'continue',
          }));
          const task = await client.post('/tasks', {
            ...taskOf(id, ...steps),
            payload: { pipeline: steps, params: { url } },
          });
          if (task.status !== 201) continue;
          await client.post(`/tasks/${task.textAt('id')}/run_now?wait=20`);
        }
        expect(server.requests).to.equal(0);
      } finally {
        await server.close();
      }
    });

    it('sends no webhook to a private address, and accepts no other scheme', async () => {
      const server = await HostileServer.start();
      try {
        const { admin } = world();
        const webhook_url = `http://127.0.0.1:${server.port}/`;
        const made = await admin.post('/agents', { name: 'hooked', scopes: [], webhook_url });
        if (made.status === 201) {
          const path = `/agents/${made.textAt('id')}`;
          await admin.post(`${path}/webhook-test`);
          await found(async () => {
            const { json } = await admin.get(`${path}/webhooks/deliveries`);
            const items = json['items'] as readonly { readonly state: string }[];
            return items.find(({ state }) => state === 'failed');
          });
        }
        expect(server.requests).to.equal(0);
        for (const url of ['file:///etc/passwd', 'gopher://127.0.0.1/', 'data:text/plain,x']) {
          const fields = { name: url, scopes: [], webhook_url: url };
          expect((await admin.post('/agents', fields)).status, url).to.equal(400);
        }
      } finally {
        await server.close();
      }
    });
  });

  describe('API8, security misconfiguration', () => {
    it('reveals no internals in errors', async () => {
      const { client } = await signIn(world(), ['tasks:read']);
      const headers = { 'content-type': 'application/json' };
      const answers = [
        await client.send('POST', '/tasks', { raw: '{"a":', headers }),
        await client.get('/tasks/%ff'),
        await client.get('/tasks?limit[]=1'),
        await client.get(`/tasks/${noSuch}`),
        await client.as(null).get('/tasks'),
      ];
      for (const { status, text } of answers) {
        expect(status).to.be.within(400, 499);
        expect(text).to.not.match(/node_modules|\.ts:|\.js:|\n\s+at |SQLITE|\/work|\/app\//);
      }
    });

    it('trusts no other origin, and keeps credentials out of caches', async () => {
      const { client, id, secret } = await signIn(world(), ['tasks:read']);
      for (const origin of ['https://evil.example', 'null', client.url.replace('http', 'https')]) {
        const answer = await client.get('/tasks', { headers: { origin } });
        expect(answer.headers).to.not.have.property('access-control-allow-origin');
        expect(answer.headers).to.not.have.property('access-control-allow-credentials');
      }
      const tokens = await client.post('/agents/auth/token', {
        agent_id: id,
        agent_secret: secret,
      });
      expect(tokens.header('cache-control')).to.contain('no-store');
      const trace = await client.send('TRACE', '/tasks');
      expect([404, 405, 501]).to.include(trace.status);
      expect(trace.text).to.not.contain(client.token);
    });

    it('does not start in production with a weak key', () => {
      const weak = ['x'.repeat(32), 'changeme', '0123456789abcdef'.repeat(2)];
      for (const JWT_SECRET_KEY of weak) {
        const env = { NODE_ENV: 'production', JWT_SECRET_KEY, SVC_DATA_DIR: '/nowhere' };
        expect(() => readConfiguration(env), JWT_SECRET_KEY).to.throw(/JWT_SECRET_KEY/);
      }
    });
  });

  describe('API9, improper inventory management', () => {
    type Operation = { readonly security?: readonly object[] };
    type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

    it('requires a token for every described operation, except for a fixed list', async () => {
      const open = world().admin.as(null);
      const paths = (await open.get('/openapi.json')).at('paths') as Paths;
      const unprotected: string[] = [];
      for (const [path, operations] of Object.entries(paths)) {
        for (const method of Object.keys(operations)) {
          if (!['get', 'post', 'put', 'delete'].includes(method)) continue;
          const filled = path.replaceAll(/\{\w+\}/g, noSuch);
          const { status } = await open.send(method.toUpperCase(), filled);
          if (status !== 401) unprotected.push(`${method} ${path}`);
        }
      }
      expect(unprotected.toSorted()).to.deep.equal(openOperations);
    });

    it('serves no undescribed endpoint', async () => {
      const { client } = await signIn(world(), ['tasks:read']);
      const paths = [
        ...['/api/v1/tasks', '/v1/tasks', '/admin', '/debug', '/debug/pprof', '/actuator/env'],
        ...['/graphql', '/swagger.json', '/.env', '/.git/config', '/server-status', '/internal'],
        ...['/data/events.db', '/jwt-secret.key', '/admin-credentials.json', '/package.json'],
        ...['/ext/webui/../../jwt-secret.key', '/ext/webui/%2e%2e/%2e%2e/package.json'],
      ];
      for (const path of paths) {
        const { status } = await client.get(path);
        expect([400, 404], path).to.include(status);
      }
    });
  });
});

describe('API10 of the OWASP API Security Top 10, unsafe consumption of APIs', function () {
  this.timeout(60_000);
  const world = useWorkerWorld({ SVC_HTTP_ALLOW_PRIVATE: 'true' });
  let server: HostileServer;
  before(async () => {
    server = await HostileServer.start();
  });
  after(() => server.close());

  const fetchFrom = async (path: string) => {
    const call = { id: 'got', uses: 'http.request', timeout_seconds: 3 };
    const steps = [
      { ...call, with: { url: `${server.url}${path}` }, on_error: 'continue' },
      { id: 'next', uses: 'echo', with: { got: '${steps.got.body}' }, on_error: 'continue' },
    ];
    const run = await world().run(...steps);
    return world().ended(run);
  };

  it('survives responses that are endless, slow or broken', async () => {
    for (const path of ['endless', 'slow', 'broken', 'headers', 'loop']) {
      const run = await fetchFrom(path);
      expect(JSON.stringify(run).length, path).to.be.lessThan(600_000);
    }
    expect((await world().admin.get('/health/ready')).status).to.equal(200);
  });

  it('treats the content of a response as data, not as an expression or a prototype', async () => {
    const { output } = await fetchFrom('expression');
    const text = JSON.stringify(output);
    expect(text).to.contain('${secrets.TOKEN}').and.to.contain('${`1` + `1`}');
    await fetchFrom('prototype');
    expect(({} as { readonly polluted?: unknown }).polluted).to.equal(undefined);
  });

  it('does not forward credentials when a response redirects', async () => {
    const other = await HostileServer.start();
    try {
      const location = encodeURIComponent(other.url);
      const headers = { authorization: 'Bearer for the first only', cookie: 'a=b' };
      const url = `${server.url}redirect?to=${location}`;
      await world().ended(await world().run({ uses: 'http.request', with: { url, headers } }));
      expect(other.requests).to.equal(1);
      expect(other.lastHeaders).to.not.have.any.keys('authorization', 'cookie');
    } finally {
      await other.close();
    }
  });
});

/** Operations that need no token. Add others only after careful thought. */
const openOperations: readonly string[] = [
  'delete /auth/session',
  'get /.well-known/oauth-authorization-server',
  'get /.well-known/oauth-protected-resource',
  'get /.well-known/oauth-protected-resource/ext/mcp_http/mcp',
  'get /auth/oidc/callback',
  'get /auth/oidc/login',
  'get /auth/session',
  'get /docs',
  'get /ext/mcp_http/meta',
  'get /ext/observability/metrics',
  'get /ext/status',
  'get /ext/webui',
  'get /ext/{extension_id}/health',
  'get /health',
  'get /health/live',
  'get /health/ready',
  'get /openapi.json',
  'post /agents/auth/refresh',
  'post /agents/auth/revoke',
  'post /agents/auth/token',
  'post /auth/session',
  'post /callbacks/{token}',
  'post /callbacks/{token}/fail',
  'post /oauth/token',
];
