import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { expect } from 'chai';
import { createObservingApp } from '../../../api/app.ts';
import { createHttpServer } from '../../../api/serving/http-server.ts';
import { pageHeaders } from '../../../api/serving/security-headers.ts';
import { silent } from '../../../observability/telemetry.ts';
import { useRunningApi, type RunningApi } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';

/** Everything received on a connection until it is closed. */
async function exchange(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let received = '';
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
  socket.write(text);
  await once(socket, 'close');
  return received;
}

const bodyOf = (received: string): Record<string, unknown> =>
  JSON.parse(received.slice(received.indexOf('\r\n\r\n') + 4)) as Record<string, unknown>;

describe('the HTTP interface under unusual requests', () => {
  const api = useRunningApi();

  it('states in every response what browsers may do with it', async () => {
    const { client } = api().admin;
    for (const path of ['/tasks', '/nowhere', '/health/live', '/tasks/x']) {
      const answer = await client.get(path);
      expect(answer.header('Content-Security-Policy')).to.contain("default-src 'none'");
      expect(answer.header('Content-Security-Policy')).to.contain("frame-ancestors 'none'");
      expect(answer.header('X-Content-Type-Options')).to.equal('nosniff');
      expect(answer.header('X-Frame-Options')).to.equal('DENY');
      expect(answer.header('Referrer-Policy')).to.equal('no-referrer');
      expect(answer.header('Strict-Transport-Security')).to.match(/^max-age=\d{7,}/);
      expect(answer.headers).to.not.have.property('x-powered-by');
      expect(answer.headers).to.not.have.property('access-control-allow-origin');
    }
  });

  it("lets a page load the service's files, and nothing from elsewhere", () => {
    const policy = pageHeaders()['Content-Security-Policy'] ?? '';
    expect(policy).to.contain("script-src 'self';").and.contain("default-src 'none'");
    expect(policy).to.not.match(/https?:|\*|unsafe-eval/);
    expect(pageHeaders()).to.include({ 'Cross-Origin-Opener-Policy': 'same-origin' });
  });

  it('refuses a URL that is too long', async () => {
    const { client } = api().admin;
    const answer = await client.get(`/tasks?search=${'x'.repeat(8200)}`);
    expect(answer.status).to.equal(414);
    expect(answer.at('error')).to.equal('uri_too_long');
    expect(answer.at('details')).to.deep.equal({ limit: 8192 });
    expect((await client.get(`/tasks?search=${'x'.repeat(8000)}`)).status).to.equal(400);
  });

  it('refuses headers that are too large, and requests that are not HTTP, with an error body', async () => {
    const large = `GET /tasks HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(20_000)}\r\n\r\n`;
    const overflow = await exchange(api().url, large);
    expect(overflow).to.match(/^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/);
    expect(bodyOf(overflow)).to.include({ error: 'headers_too_large' });
    expect(bodyOf(overflow)['details']).to.deep.equal({ limit: 16_384 });
    const broken = await exchange(api().url, 'NO SUCH THING\r\n\r\n');
    expect(broken).to.match(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(bodyOf(broken)).to.have.all.keys('error', 'message', 'details', 'request_id');
    expect(bodyOf(broken)['details']).to.include({ field: 'request' });
  });

  it('refuses more headers than it reads, because an important one may be among the rest', async () => {
    const { client } = api().admin;
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, '1']));
    const answer = await client.get('/tasks', { headers: many(120) });
    expect(answer.status).to.equal(431);
    expect(answer.at('error')).to.equal('headers_too_large');
    expect(answer.at('details')).to.deep.equal({ limit: 100 });
    expect((await client.get('/tasks', { headers: many(90) })).status).to.equal(200);
    // More than Node reads by default: the response stays the same.
    expect((await client.get('/tasks', { headers: many(1500) })).at('details')).to.deep.equal({
      limit: 100,
    });
  });

  it('ignores an unknown expectation', async () => {
    const head = 'GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n';
    expect(await exchange(api().url, `${head}Expect: foo\r\n\r\n`)).to.match(/^HTTP\/1\.1 200 /);
  });

  it('ignores If-None-Match with an asterisk', async () => {
    for (const path of ['/ext/observability/metrics', '/docs', '/docs/start.js', '/tasks']) {
      const { token } = api().admin.client;
      const head = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${String(token)}\r\n`;
      const received = await exchange(api().url, `${head}If-None-Match: *\r\n\r\n`);
      expect(received, path).to.match(/^HTTP\/1\.1 200 /);
    }
  });

  it('finds a parameter after a thousand others', async () => {
    const { client } = api().admin;
    const answer = await client.get(`/tasks?${'a&'.repeat(1000)}limit=0`);
    const issues = answer.at('details.issues') as readonly { readonly field: string }[];
    expect(answer.status).to.equal(400);
    expect(issues.map(({ field }) => field)).to.deep.equal(['a', 'limit']);
  });

  it('names the methods of paths that need no token', async () => {
    const { client } = api().admin;
    for (const path of ['/health', '/health/live', '/openapi.json', '/docs']) {
      const options = await client.send('OPTIONS', path);
      expect([options.status, options.header('Allow')], path).to.deep.equal([
        204,
        'GET, HEAD, OPTIONS',
      ]);
      const post = await client.post(path);
      expect([post.status, post.header('Allow')], path).to.deep.equal([404, 'GET, HEAD, OPTIONS']);
    }
  });

  it('requires a token before it decodes a path', async () => {
    const received = await exchange(
      api().url,
      'GET /tasks/%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    );
    expect(received).to.match(/^HTTP\/1\.1 401 /);
    expect((await api().admin.client.get('/tasks/%zz')).status).to.equal(400);
  });

  it('accepts JSON with any JSON media type, however long', async () => {
    const { admin } = api();
    const publish = (type: string) =>
      admin.client.post('/events', undefined, {
        raw: `{"topic":"typed","source_agent_id":"${admin.id}","payload":{}}`,
        headers: { 'content-type': type },
      });
    for (const type of [
      'application/json; version=1',
      'application/json; charset=utf-8; boundary=x',
      'application/json;\tcharset="UTF-8"',
      'Application/vnd.api+json;',
    ]) {
      expect((await publish(type)).status, type).to.equal(202);
    }
    for (const type of [
      'application/json; charset=latin1',
      `application/json${' '.repeat(15_000)}x`,
      'text/json',
      'application/jsonx',
      'application/+json',
    ]) {
      expect((await publish(type)).status, type).to.equal(415);
    }
  });

  it('requires a Host header', async () => {
    const received = await exchange(api().url, 'GET /tasks HTTP/1.1\r\nConnection: close\r\n\r\n');
    expect(received).to.match(/^HTTP\/1\.1 400 /);
    expect(bodyOf(received)['details']).to.include({ field: 'Host' });
    const old = await exchange(api().url, 'GET /health/live HTTP/1.0\r\n\r\n');
    expect(old).to.match(/^HTTP\/1\.1 200 /);
  });

  it('rejects a request with an ambiguous host', async () => {
    const doubtful = [
      'HTTP/1.1\r\nHost: a.example\r\nHost: b.example',
      'HTTP/1.1\r\nHost: a.example\r\nhOST: a.example',
      'HTTP/1.0\r\nHost: a.example\r\nHost: a.example',
      'HTTP/1.1\r\nHost: a.example, b.example',
      'HTTP/1.1\r\nHost: a.example/tasks',
      'HTTP/1.1\r\nHost: user@a.example',
      'HTTP/1.1\r\nHost: a.example:80:81',
      'HTTP/1.1\r\nHost: [::1',
    ];
    for (const path of ['/tasks', '/health', '/ext/status', '/openapi.json', '/nowhere']) {
      for (const head of doubtful) {
        const request = `GET ${path} ${head}\r\nConnection: close\r\n\r\n`;
        const received = await exchange(api().url, request);
        expect(received, request).to.match(/^HTTP\/1\.1 400 /);
        expect(bodyOf(received)['details'], request).to.include({ field: 'Host' });
      }
    }
    for (const host of ['', 'a.example', 'a.example:8080', '[::1]:80', 'a_b.example', 'x:']) {
      const head = `GET /health/live HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
      expect(await exchange(api().url, head), host).to.match(/^HTTP\/1\.1 200 /);
    }
  });

  it('rejects it in a process without the interface too', async () => {
    const health = {
      report: () => Promise.resolve({ status: 200, body: {} }),
      ready: () => Promise.resolve({ status: 200, body: {} }),
      live: () => ({}),
    };
    const observing = { health, metricsText: () => Promise.resolve('') };
    const about = { telemetry: silent, production: false };
    const server = createHttpServer(createObservingApp(observing, about));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const head = 'GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n';
    const [one, two] = [
      await exchange(url, `${head}\r\n`),
      await exchange(url, `${head}Host: b\r\n\r\n`),
    ];
    server.close();
    expect(one).to.match(/^HTTP\/1\.1 200 /);
    expect(two).to.match(/^HTTP\/1\.1 400 /);
  });

  it('refuses a request with two lengths, because a second request could hide in it', async () => {
    const head = 'POST /events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
    const lengths = 'Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n';
    const received = await exchange(api().url, `${head}${lengths}0\r\n\r\nGET /x HTTP/1.1\r\n\r\n`);
    expect(received).to.match(/^HTTP\/1\.1 400 /);
    expect(received.match(/HTTP\/1\.1 /g)).to.have.length(1);
  });

  it('accepts JSON of 64 levels and no more', async () => {
    const { admin } = api();
    const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
    const publish = (payload: string) =>
      admin.client.post('/events', undefined, {
        raw: `{"topic":"deep","source_agent_id":"${admin.id}","payload":${payload}}`,
        headers: { 'content-type': 'application/json' },
      });
    // The body and the payload are the first two levels.
    const taken = await publish(`{"a":${nested(62)}}`);
    expect(taken.status, taken.text).to.equal(202);
    const refused = await publish(`{"a":${nested(63)}}`);
    expect(refused.status).to.equal(400);
    expect(refused.at('details.field')).to.equal('body');
    expect(refused.textAt('details.issue')).to.contain('64 levels');
  });

  it('stores names of prototypes as plain data, or refuses them', async () => {
    const { admin } = api();
    const evil = {
      constructor: { prototype: { polluted: 'yes' } },
      prototype: { polluted: 'yes' },
    };
    const body = {
      ...plainTask(admin.id),
      payload: { pipeline: [], params: evil, toString: 'x', hasOwnProperty: 1 },
    };
    const created = await admin.client.post('/tasks', body);
    // The schema decides whether the payload may hold other fields; they must have no effect.
    expect(created.status).to.be.oneOf([201, 400]);
    const inside = { ...plainTask(admin.id), payload: { pipeline: [], params: evil } };
    const kept = await admin.client.post('/tasks', inside);
    expect(kept.status, kept.text).to.equal(201);
    expect(kept.at('payload.params')).to.deep.equal(evil);
    const published = await admin.client.post('/events', {
      topic: 'evil',
      source_agent_id: admin.id,
      payload: evil,
    });
    expect(published.status).to.equal(202);
    for (const path of [
      '/tasks?__proto__=x&constructor=y&toString=z',
      '/tasks?__proto__[polluted]=yes',
      '/tasks?constructor[prototype][polluted]=yes',
    ]) {
      expect((await admin.client.get(path)).status, path).to.equal(400);
    }
    expect((await admin.client.get('/tasks/__proto__')).status).to.equal(400);
    expect((await admin.client.get('/__proto__')).status).to.equal(404);
    expect(({} as Record<string, unknown>)['polluted']).to.equal(undefined);
  });

  it('logs no token, whatever the request contains', async () => {
    const { client } = api().admin;
    const token = String(client.token);
    await client.get('/tasks', { headers: { 'x-request-id': token.slice(0, 90) } });
    await client.get(`/tasks/${token}`);
    await client.post('/agents/auth/revoke', { token: `${token}x` });
    api().store.failNext('topic-');
    const payload = { token, password: 'a-telling-word' };
    const event = { topic: 'a', payload, source_agent_id: api().admin.id };
    expect((await client.post('/events', event)).status).to.equal(503);
    const signature = token.split('.')[2] ?? '';
    expect(signature).to.have.length.greaterThan(20);
    expect(api().logged.filter((line) => line.includes(signature))).to.deep.equal([]);
    expect(api().logged.filter((line) => line.includes('a-telling-word'))).to.deep.equal([]);
  });
});

describe('pages of other origins', () => {
  const api = useRunningApi({ corsOrigins: ['https://app.example', 'http://localhost:3000'] });

  it('may call the interface and read responses if their origin is allowed', async () => {
    const { client } = api().admin;
    const headers = { origin: 'https://app.example' };
    const answer = await client.get('/tasks', { headers });
    expect(answer.status).to.equal(200);
    expect(answer.header('Access-Control-Allow-Origin')).to.equal('https://app.example');
    expect(answer.header('Vary')).to.contain('Origin');
    expect(answer.header('Access-Control-Expose-Headers')).to.contain('X-Event-Position');
    const refused = await client.get('/tasks', { headers, token: null });
    expect(refused.status).to.equal(401);
    expect(refused.header('Access-Control-Allow-Origin')).to.equal('https://app.example');
  });

  it('get the allowed methods and headers in a preflight response', async () => {
    const answer = await api().admin.client.send('OPTIONS', '/tasks', {
      token: null,
      headers: {
        origin: 'http://localhost:3000',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type',
      },
    });
    expect(answer.status).to.equal(204);
    expect(answer.header('Access-Control-Allow-Origin')).to.equal('http://localhost:3000');
    expect(answer.header('Access-Control-Allow-Methods')).to.contain('POST');
    expect(answer.header('Access-Control-Allow-Headers')).to.contain('Idempotency-Key');
    expect(answer.headers).to.not.have.property('access-control-allow-credentials');
  });

  it('may not read responses if their origin is not allowed', async () => {
    for (const origin of ['https://evil.example', 'https://app.example.evil.example', 'null']) {
      const answer = await api().admin.client.get('/tasks', { headers: { origin } });
      expect(answer.headers, origin).to.not.have.property('access-control-allow-origin');
    }
  });
});

describe('the address of a client', () => {
  const forwarded = (address: string) => ({ headers: { 'x-forwarded-for': address } });
  /** Moves the time into a window of the request limit that does not end during a test. */
  const beginWindow = ({ clock }: RunningApi): void => clock.shift(60_001 - (clock.now() % 60_000));

  describe('behind a trusted proxy', () => {
    const api = useRunningApi({ trustProxy: 1, rateLimit: 3 });
    beforeEach(() => beginWindow(api()));

    it("is the proxy's value, and for IPv6 its network", async () => {
      const nobody = api().admin.client.as(null);
      const left = async (address: string): Promise<string> =>
        (await nobody.get('/x', forwarded(address))).header('X-RateLimit-Remaining');
      expect(await left('203.0.113.1')).to.equal('2');
      expect(await left('203.0.113.2')).to.equal('2');
      // The client's own claim precedes the proxy's value.
      expect(await left('203.0.113.9, 203.0.113.1')).to.equal('1');
      expect(await left('2001:db8:0:1::1')).to.equal('2');
      expect(await left('2001:db8:0:2::2')).to.equal('1');
    });
  });

  describe('without a proxy', () => {
    const api = useRunningApi({ rateLimit: 3 });
    beforeEach(() => beginWindow(api()));

    it('is the address of the connection, whatever the client claims', async () => {
      const nobody = api().admin.client.as(null);
      await nobody.get('/x', forwarded('203.0.113.1'));
      const answer = await nobody.get('/x', forwarded('203.0.113.2'));
      expect(answer.header('X-RateLimit-Remaining')).to.equal('1');
    });
  });
});

describe('a slow client', () => {
  it('that does not finish its headers gets an error, and is disconnected', async () => {
    const server = createHttpServer(() => {}, { headersTimeout: 50, checkEvery: 20 });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
    const received = await exchange(url, 'GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    server.close();
    expect(received).to.match(/^HTTP\/1\.1 408 Request Timeout\r\n/);
    expect(bodyOf(received)).to.include({ error: 'request_timeout' });
  });

  it('has limited time to send a request and to read the response', () => {
    const server = createHttpServer(() => {});
    expect(server.headersTimeout).to.equal(15_000);
    expect(server.requestTimeout).to.equal(60_000);
    expect(server.timeout).to.equal(120_000);
    server.close();
  });
});
