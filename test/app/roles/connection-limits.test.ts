import { expect } from 'chai';
import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import type { Server } from 'node:http';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import express from 'express';
import { noteAuthenticated } from '../../../api/serving/client-connections.ts';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import { listen, stopServing } from '../../../app/roles/serving.ts';
import { silent } from '../../../observability/telemetry.ts';
import { ShiftedClock } from '../../support/shifted-clock.ts';
import { testCertificate } from '../../support/tls-certificate.ts';

describe('a server with limits for connections', () => {
  let server: Server;
  const refused: unknown[] = [];
  const sockets: Socket[] = [];

  async function start(
    settings: Readonly<Record<string, string>>,
    { trust = 0, secure = false } = {},
  ): Promise<void> {
    const app = express();
    app.set('trust proxy', trust === 0 ? false : trust);
    app.get('/private', (request, response) => {
      noteAuthenticated(request.socket);
      response.end('ok');
    });
    const { sharing } = readConfiguration(settings);
    const clock = new ShiftedClock(undefined, { passes: true });
    const count = (_: string, labels: object = {}): void => void refused.push(labels);
    const telemetry = { ...silent, count };
    const tls = secure ? testCertificate : null;
    const place = { host: '127.0.0.1', port: 0, sharing };
    server = await listen(app, place, Infinity, { clock, telemetry, tls });
  }

  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    refused.length = 0;
    await stopServing(server);
  });

  const port = (): number => (server.address() as AddressInfo).port;

  /** Resolves when the server has the connection. */
  async function open(): Promise<Socket> {
    const seen = once(server, 'connection');
    const socket = connect(port(), '127.0.0.1').on('error', () => {});
    sockets.push(socket);
    await seen;
    return socket;
  }

  async function ask(socket: Socket): Promise<string> {
    socket.write('GET /private HTTP/1.1\r\nHost: x\r\n\r\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    return answer.toString();
  }

  it('responds to an address with too many connections with 429, the reason and Retry-After', async () => {
    await start({ SVC_CONNECTIONS_PER_ADDRESS: '2' });
    const first = await open();
    await open();
    const answer = await text(await open());
    expect(answer).to.match(/^HTTP\/1\.1 429 Too Many Requests\r\n/);
    expect(answer).to.include('Retry-After: 5\r\n');
    expect(answer).to.include('2 connections of this address are open');
    expect(refused).to.deep.equal([{ limit: 'address' }]);
    const ended = once(first, 'close');
    first.destroy();
    await ended;
    await new Promise((resolve) => setImmediate(resolve));
    expect(await ask(await open())).to.match(/^HTTP\/1\.1 200/);
  });

  it('responds with 503 when too many connections have not shown a valid token', async () => {
    await start({ SVC_UNAUTHENTICATED_CONNECTIONS: '1' });
    const first = await open();
    expect(await text(await open())).to.match(
      /^HTTP\/1\.1 503 [^]*SVC_UNAUTHENTICATED_CONNECTIONS/,
    );
    expect(await ask(first)).to.match(/^HTTP\/1\.1 200/);
    const second = await open();
    expect(await ask(second)).to.match(/^HTTP\/1\.1 200/);
    expect(refused).to.deep.equal([{ limit: 'unauthenticated' }]);
  });

  it('does not limit a trusted proxy, which connects for many clients', async () => {
    await start({ SVC_CONNECTIONS_PER_ADDRESS: '1' }, { trust: 1 });
    const both = [await open(), await open()];
    for (const socket of both) expect(await ask(socket)).to.match(/^HTTP\/1\.1 200/);
  });

  it('has no limit if the setting is 0', async () => {
    await start({ SVC_CONNECTIONS_PER_ADDRESS: '0', SVC_UNAUTHENTICATED_CONNECTIONS: '0' });
    const some = [await open(), await open(), await open()];
    for (const socket of some) expect(await ask(socket)).to.match(/^HTTP\/1\.1 200/);
  });

  it('counts connections over TLS too, and closes those over a limit', async () => {
    await start({ SVC_UNAUTHENTICATED_CONNECTIONS: '1' }, { secure: true });
    const dial = (): Socket => {
      const socket = connectTls({ port: port(), host: '127.0.0.1', rejectUnauthorized: false });
      sockets.push(socket.on('error', () => {}));
      return socket;
    };
    const first = dial();
    await once(first, 'secureConnect');
    await new Promise((resolve) => dial().once('close', resolve));
    expect(await ask(first)).to.match(/^HTTP\/1\.1 200/);
    await once(dial(), 'secureConnect');
    expect(refused).to.deep.equal([{ limit: 'unauthenticated' }]);
  });
});
