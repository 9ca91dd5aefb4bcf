import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import WebSocket from 'ws';
import { eventually } from '../support/signals.ts';
import { manifestOf, reached, useHosting } from './hosting.ts';

describe('a client of an extension that disconnects early', () => {
  const hosting = useHosting();

  /** A client that sends raw bytes. */
  async function send(url: string, lines: readonly string[], body = ''): Promise<Socket> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    await once(socket, 'connect');
    const [first = '', ...others] = lines;
    const head = [first, 'Host: test', 'Authorization: Bearer reader', ...others];
    socket.write([...head, '', body].join('\r\n'));
    return socket;
  }

  async function start(): Promise<string> {
    const module = `export function setup({ routes, websocket, streams }) {
      routes.post('/', (request, response) => response.json({ body: request.body }));
      websocket('echo', (socket) => socket.onMessage((message) => socket.send(message)));
      reached.actAs = (agent) =>
        streams.append('news', {}, agent).then(() => 'done', ({ code }) => code);
    }`;
    const capabilities = ['ROUTES', 'EVENTS_PUB'];
    await hosting().write('plain', manifestOf('plain', { capabilities }), module);
    const { url } = await hosting().start();
    return url;
  }

  /** The result of an extension that acts for an agent. */
  const actAs = (agent: string): Promise<string> =>
    (reached['actAs'] as (agent: string) => Promise<string>)(agent);

  const underWay = (): unknown =>
    hosting()
      .host?.activeConnections()
      .map(({ value }) => value);

  const counted = async (): Promise<boolean> =>
    (await hosting().metricsText()).includes('extension_requests_total{extension="plain"');

  it('is no longer served if it disconnects while sending its body', async () => {
    const url = await start();
    const head = ['POST /ext/plain/ HTTP/1.1', 'Content-Type: application/json'];
    const socket = await send(url, [...head, 'Content-Length: 100'], '{"a":');
    socket.destroy();
    await eventually(counted);
    expect(underWay()).to.deep.equal([0]);
    expect(await actAs('reader')).to.equal('forbidden');
  });

  it('causes no error if its handler gives up, but any other error counts', async () => {
    const module = `export function setup({ routes, signalOf }) {
      const left = (request) => new Promise((resolve) => {
        reached.waiting = (reached.waiting ?? 0) + 1;
        signalOf(request).addEventListener('abort', () => resolve(signalOf(request).reason));
      });
      routes.get('/given-up', async (request) => { throw await left(request); });
      routes.get('/broken', async (request) => { await left(request); throw new TypeError('no'); });
    }`;
    await hosting().write('plain', manifestOf('plain'), module);
    const { url } = await hosting().start();
    for (const [at, path] of ['given-up', 'broken'].entries()) {
      const socket = await send(url, [`GET /ext/plain/${path} HTTP/1.1`]);
      await eventually(() => void expect(reached['waiting']).to.equal(at + 1));
      socket.destroy();
    }
    const errors = async (): Promise<readonly string[]> =>
      (await hosting().metricsText())
        .split('\n')
        .filter((each) => each.startsWith('extension_errors'));
    await eventually(async () => void expect(await errors()).not.to.deep.equal([]));
    expect(await errors()).to.deep.equal([
      'extension_errors_total{extension="plain",endpoint="/broken",error_type="TypeError"} 1',
    ]);
  });

  it('gets an error for an invalid WebSocket handshake', async () => {
    const url = await start();
    const head = ['GET /ext/plain/ws/echo HTTP/1.1', 'Connection: Upgrade', 'Upgrade: websocket'];
    const socket = await send(url, [...head, 'Sec-WebSocket-Version: 12']);
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
    await once(socket, 'close');
    expect(answer).to.match(/^HTTP\/1.1 400 /);
    expect(answer).to.match(/"error":"bad_request".*"field":"handshake"/);
    await eventually(counted);
    expect(underWay()).to.deep.equal([0]);
    expect(await actAs('reader')).to.equal('forbidden');
  });

  it('cannot open a WebSocket once the service is stopping', async () => {
    const url = await start();
    await hosting().host?.endConnections();
    const refused = new WebSocket(`${url.replace('http', 'ws')}/ext/plain/ws/echo`, {
      headers: { authorization: 'Bearer reader' },
    });
    const [{ message }] = (await once(refused, 'error')) as [Error];
    expect(message).to.equal('Unexpected server response: 503');
  });
});
