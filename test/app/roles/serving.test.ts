import { expect } from 'chai';
import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import express from 'express';
import { listen, stopServing } from '../../../app/roles/serving.ts';
import { silent } from '../../../observability/telemetry.ts';
import { ShiftedClock } from '../../support/shifted-clock.ts';
import { Signal } from '../../support/signals.ts';

describe('a server at its connection limit', () => {
  it('refuses further connections, logs that once a minute, and accepts them when one has ended', async () => {
    const said = new Signal<object>('warnings');
    const log = { ...silent.log, warn: (_: string, fields = {}) => said.send(fields) };
    const telemetry = { ...silent, log };
    const clock = new ShiftedClock(undefined, { passes: true });
    const place = { host: '127.0.0.1', port: 0 };
    const server = await listen(express(), place, 1, { clock, telemetry, tls: null });
    const { port } = server.address() as AddressInfo;
    const open = (): Socket => connect(port, '127.0.0.1').on('error', () => {});
    const refused = async (): Promise<unknown> => once(open(), 'close');
    try {
      const taken = once(server, 'connection') as Promise<[Socket]>;
      const first = open();
      const [held] = await taken;
      await refused();
      await refused();
      expect(said.values).to.deep.equal([{ connections: 1, refused: 1 }]);
      clock.shift(60_000);
      await refused();
      expect(said.values[1]).to.deep.equal({ connections: 1, refused: 2 });
      const ended = once(held, 'close');
      first.destroy();
      await ended;
      const answer = await fetch(`http://127.0.0.1:${String(port)}/`);
      expect(answer.status).to.equal(404);
    } finally {
      await stopServing(server);
    }
  });
});
