import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import express from 'express';
import { expect } from 'chai';
import { listen, stopServing } from '../../../app/roles/serving.ts';
import { Sockets } from '../../../extensions/host/routes/sockets.ts';
import { createTelemetry } from '../../../observability/create-telemetry.ts';
import { eventually } from '../../support/signals.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

describe('a server with WebSockets', () => {
  let server: Server;
  const sockets: Socket[] = [];
  let waiting = 0;

  beforeEach(async () => {
    const telemetry = createTelemetry({ level: 'silent' });
    const app = express();
    app.get('/waits', () => void (waiting += 1));
    const clock = new VirtualClock();
    server = await listen(app, { host: '127.0.0.1', port: 0 }, Infinity, {
      clock,
      telemetry,
      tls: null,
    });
    const upgrades = new Sockets();
    server.on('upgrade', (...given) => upgrades.receive(app, server, ...given));
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await stopServing(server);
  });

  /** A client that never ends its side of the connection. */
  async function ask(path: string): Promise<Socket> {
    const { port } = server.address() as AddressInfo;
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    sockets.push(socket);
    await once(socket, 'connect');
    const head = ['Host: test', 'Connection: Upgrade', 'Upgrade: websocket'];
    socket.write([`GET ${path} HTTP/1.1`, ...head, '', ''].join('\r\n'));
    socket.resume();
    return socket;
  }

  it('closes the connection of a refused client that never closes its own side', async () => {
    await once(await ask('/nowhere'), 'end');
    await eventually(
      () =>
        new Promise<boolean>((resolve) => {
          server.getConnections((_error, count) => resolve(count === 0));
        }),
    );
  });

  it('stops while an upgrade request waits for a response', async () => {
    waiting = 0;
    await ask('/waits');
    await eventually(() => waiting === 1);
    let isStopped = false;
    void stopServing(server).then(() => (isStopped = true));
    await eventually(() => isStopped);
    expect(server.listening).to.equal(false);
  });
});
