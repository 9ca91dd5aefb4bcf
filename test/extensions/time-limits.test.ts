import { expect } from 'chai';
import WebSocket from 'ws';
import { eventually, found } from '../support/signals.ts';
import { manifestOf, reached, useHosting } from './hosting.ts';

/** A short limit, in seconds. */
const SHORT_LIMIT_SECONDS = 0.1;

describe('a slow extension', () => {
  const hosting = useHosting();

  async function start(module: string, capabilities: readonly string[] = ['ROUTES']) {
    await hosting().write('slow', manifestOf('slow', { capabilities }), module);
    const { client, url, host } = await hosting().start({ extensionSeconds: SHORT_LIMIT_SECONDS });
    const info = async (): Promise<Readonly<Record<string, unknown>>> =>
      (await client.get('/ext/status')).at('extensions.slow.info') as Record<string, unknown>;
    return { client, url, host, info };
  }

  it('responds with 504 if a handler never does, which counts as an error', async () => {
    const module = `export function setup({ routes, signalOf }) {
      routes.get('/never/:id', (request, response) => {
        response.set('Content-Encoding', 'gzip').status(200);
        reached.signal = signalOf(request);
      });
      routes.post('/never', () => new Promise(() => {}));
      routes.get('/', (_request, response) => response.json({ fine: true }));
    }`;
    const { client, info } = await start(module);
    for (const answer of [
      await client.get('/ext/slow/never/1'),
      await client.post('/ext/slow/never', { a: 1 }),
    ]) {
      expect(answer.status).to.equal(504);
      expect(answer.headers).not.to.have.property('content-encoding');
      const { request_id, ...body } = answer.json;
      expect(request_id).to.equal('of-the-test');
      expect(body).to.deep.equal({
        error: 'gateway_timeout',
        message: 'extension slow did not respond within 0.1 s',
        details: { extension_id: 'slow', limit_seconds: SHORT_LIMIT_SECONDS },
      });
    }
    const signal = reached['signal'] as AbortSignal;
    expect([signal.aborted, (signal.reason as Error).name]).to.deep.equal([true, 'TimeoutError']);
    expect((await client.get('/ext/slow/')).at('fine')).to.equal(true);
    expect(await info()).to.include({
      faults: 2,
      last_fault: 'POST /never: no response within 0.1 s',
    });
    const status = await client.get('/ext/status');
    expect(status.at('extensions.slow.metrics.errors_total')).to.equal(2);
    const metrics = await hosting().metricsText();
    expect(metrics).to.include(
      'extension_errors_total{extension="slow",endpoint="/never/{id}",error_type="TimeoutError"} 1',
    );
    expect(metrics).to.include(
      'extension_requests_total{extension="slow",endpoint="/never/{id}",method="GET",status="504"} 1',
    );
  });

  it('has late responses discarded, and the connection serves the next request', async () => {
    const module = `import { pipeline } from 'node:stream/promises';
    import { Readable } from 'node:stream';
    export function setup({ routes, signalOf }) {
      const late = {
        json: async (response) => response.status(201).set('X-Late', '1').json({ late: true }),
        send: async (response) => response.send('late'),
        raw: async (response) => { response.writeHead(200, { a: 'b' }); response.write('x'); response.end('y'); },
        pipe: (response) => pipeline(Readable.from(['a', 'b']), response),
        throws: async () => { throw new RangeError('too late'); },
        timer: (response) => new Promise((done) => setTimeout(() => { response.json({}); done(); }, 1)),
      };
      reached.outcomes = {};
      for (const [name, answer] of Object.entries(late)) {
        routes.get('/' + name, async (request, response) => {
          await new Promise((over) => signalOf(request).addEventListener('abort', over));
          try { await answer(response); reached.outcomes[name] = 'dropped'; }
          catch (error) { reached.outcomes[name] = error.name; throw error; }
        });
      }
      routes.get('/', (_request, response) => response.json({ fine: true }));
    }`;
    const { client, info } = await start(module);
    const names = ['json', 'send', 'raw', 'pipe', 'throws', 'timer'];
    for (const name of names) {
      const answer = await client.get(`/ext/slow/${name}`);
      expect([answer.status, answer.at('error')], name).to.deep.equal([504, 'gateway_timeout']);
      expect(answer.headers).not.to.have.property('x-late');
      expect((await client.get('/ext/slow/')).at('fine')).to.equal(true);
    }
    await eventually(() => {
      expect(Object.keys(reached['outcomes'] as object)).to.have.members(names);
    });
    const outcomes = reached['outcomes'] as Record<string, string>;
    expect(outcomes).to.include({ json: 'dropped', raw: 'dropped', timer: 'dropped' });
    expect(outcomes['throws']).to.equal('RangeError');
    // Each counted once, when it timed out, and not again when it ended.
    expect((await info())['faults']).to.equal(names.length);
  });

  it('keeps streams and WebSockets for as long as their clients want', async () => {
    const module = `export function setup({ routes, websocket, signalOf }) {
      routes.get('/stream', async (request, response) => {
        response.set('Content-Type', 'text/event-stream').flushHeaders();
        const signal = signalOf(request);
        reached.proceed = () => response.write('data: 1\\n\\n');
        await new Promise((gone) => signal.addEventListener('abort', gone));
        reached.reason = signal.reason.message;
      });
      websocket('echo', async (socket) => {
        socket.onMessage((message) => socket.send(message));
        await new Promise(() => {});
      });
      routes.get('/never', () => {});
    }`;
    const { client, url, info } = await start(module);
    const gone = new AbortController();
    const stream = await fetch(`${url}/ext/slow/stream`, {
      headers: { authorization: 'Bearer admin' },
      signal: gone.signal,
    });
    const socket = new WebSocket(`${url.replace('http', 'ws')}/ext/slow/ws/echo`, [
      'svc.token',
      'reader',
    ]);
    await new Promise((open) => socket.once('open', open));
    // It was requested after the stream and the WebSocket, so their time limit would be over as
    // well.
    expect((await client.get('/ext/slow/never')).status).to.equal(504);
    (reached['proceed'] as () => void)();
    const { value } = (await stream.body?.getReader().read()) ?? {};
    expect(Buffer.from(value as Uint8Array).toString()).to.equal('data: 1\n\n');
    const answer = new Promise((resolve) =>
      socket.once('message', (data: Buffer) => resolve(data.toString())),
    );
    socket.send('[1]');
    expect(await answer).to.equal('[1]');
    expect((await info())['faults']).to.equal(1);
    gone.abort();
    await eventually(() => void expect(reached['reason']).to.equal('the client disconnected'));
    socket.terminate();
  });

  it('has a time limit for its own health endpoint', async () => {
    const module = `export function setup({ routes }) {
      routes.get('/health', () => new Promise(() => {}));
    }`;
    const { client, info } = await start(module);
    const answer = await client.get('/ext/slow/health');
    expect([answer.status, answer.at('details.extension_id')]).to.deep.equal([504, 'slow']);
    expect((await info())['last_fault']).to.equal('GET /health: no response within 0.1 s');
  });

  it('cannot get the signal of a request to another extension', async () => {
    const module = `export function setup({ routes, signalOf }) {
      routes.get('/', (request, response) => {
        const mine = signalOf(request);
        try { signalOf({}); } catch (error) {
          response.json({ code: error.code, field: error.details.field, aborted: mine.aborted });
        }
      });
    }`;
    const { client } = await start(module);
    expect((await client.get('/ext/slow/')).json).to.deep.equal({
      code: 'bad_request',
      field: 'request',
      aborted: false,
    });
  });

  it('is listed while a subscriber exceeds its time for an event', async () => {
    const module = `export async function setup({ events }) {
      reached.seen = [];
      await events.subscribe('orders.*', async ({ data }) => {
        if (data.n === 1) await new Promise((done) => (reached.proceed = done));
        reached.seen.push(data.n);
      });
    }`;
    const { info } = await start(module, ['EVENTS_SUB']);
    const id = await hosting().publish('orders.new', { n: 1 });
    await hosting().publish('orders.new', { n: 2 });
    await eventually(async () => {
      const { unsettled, faults, last_fault } = await info();
      expect(String(unsettled)).to.match(
        new RegExp(`^subscriber of orders\\.\\*: the event ${id}, for \\d+ s$`),
      );
      expect([faults, last_fault]).to.deep.equal([
        1,
        `subscriber of orders.*: the event ${id}: TimeoutError: still running after 0.1 s`,
      ]);
    });
    expect(reached['seen']).to.deep.equal([]);
    expect(await hosting().metricsText()).to.include(
      'extension_errors_total{extension="slow",endpoint="none",error_type="TimeoutError"} 1',
    );
    (reached['proceed'] as () => void)();
    await eventually(() => void expect(reached['seen']).to.deep.equal([1, 2]));
    expect(await info()).not.to.have.property('unsettled');
  });

  it('abandons a subscriber that continues after it was unsubscribed', async () => {
    const module = `export async function setup({ events }) {
      await events.subscribe('orders.*', (event, signal) => {
        reached.signal = signal;
        return new Promise((done) => (reached.proceed = done));
      });
      reached.unsubscribe = () => events.unsubscribe('orders.*');
    }`;
    const { info } = await start(module, ['EVENTS_SUB']);
    await hosting().publish('orders.new', {});
    await eventually(() => void expect(reached).to.have.property('proceed'));
    await (reached['unsubscribe'] as () => Promise<void>)();
    expect((reached['signal'] as AbortSignal).aborted).to.equal(true);
    const { last_fault, unsettled } = await info();
    expect(last_fault).to.equal('subscriber of orders.*: TimeoutError: stopped but still running');
    expect(String(unsettled)).to.include('stopped but still running');
    (reached['proceed'] as () => void)();
    await eventually(async () => void expect(await info()).not.to.have.property('unsettled'));
  });

  it('ends with the process in seconds, whatever still runs, after its shutdown', async () => {
    const module = `export async function setup({ routes, events, background, signalOf }) {
      const never = () => new Promise(() => {});
      await events.subscribe('orders.*', () => { reached.handled = true; return never(); });
      await background.startTask('stubborn', () => { reached.running = true; return never(); });
    }
    export function shutdown() { reached.shutDown = true; return new Promise(() => {}); }`;
    await start(module, ['ROUTES', 'EVENTS_SUB', 'BACKGROUND_TASKS']);
    await eventually(() => void expect(reached['running']).to.equal(true));
    await hosting().publish('orders.new', {});
    await eventually(() => void expect(reached['handled']).to.equal(true));
    const begun = performance.now();
    await hosting().stop();
    expect(reached['shutDown']).to.equal(true);
    expect(performance.now() - begun).to.be.lessThan(12_000);
    // The next process need not wait until the lease expires.
    expect(await hosting().canLease('slow')).to.equal(true);
  });

  it('is abandoned during its setup when the process stops', async () => {
    const module = `export const setup = () => {
      reached.begun();
      return new Promise(() => {});
    };`;
    await hosting().write('slow', manifestOf('slow'), module);
    const begun = new Promise<void>((resolve) => (reached['begun'] = resolve));
    const starting = hosting().start();
    await begun;
    const host = await found(() => hosting().host);
    const asked = performance.now();
    await host.close();
    expect(performance.now() - asked).to.be.lessThan(8_000);
    await starting;
    expect(JSON.stringify(host.status())).to.include('the process stopped before setup completed');
  });
});
