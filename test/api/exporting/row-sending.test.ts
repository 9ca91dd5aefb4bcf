import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { Request, Response } from 'express';
import type { ExportedPart } from '../../../api/exporting/export-formats.ts';
import { sendRows } from '../../../api/exporting/row-sending.ts';
import { silent } from '../../../observability/telemetry.ts';
import { eventually } from '../../support/signals.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

/** Serves an endless export in parts of 64 KiB, as fast as they are read. */
async function serve(stillAdmitted: () => Promise<boolean>, clock = new VirtualClock(0)) {
  const made = { parts: 0, ended: false };
  async function* parts(): AsyncGenerator<ExportedPart> {
    try {
      for (;;) {
        made.parts += 1;
        void clock.advance(100);
        yield { text: 'x'.repeat(65_536), count: 1, share: 0, read: 1 };
      }
    } finally {
      made.ended = true;
    }
  }
  const server = createServer((request, response) => {
    const streaming = {
      request: request as Request,
      response: response as Response,
      stillAdmitted,
    };
    const rows = { name: 'rows', format: 'ndjson', parts: parts(), endMark: null } as const;
    const around = { clock, telemetry: silent, stopping: new AbortController().signal };
    void sendRows(streaming, { ...rows, stop: new AbortController() }, around);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const asked = get(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, {
    agent: false,
  });
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const close = (): void => {
    response.destroy();
    server.close();
    server.closeAllConnections();
  };
  return { made, response, close };
}

describe('sending rows', () => {
  it('produces no more rows than the client reads', async () => {
    const { made, close } = await serve(() => Promise.resolve(true));
    // Fills the connection's buffers, after which it stalls.
    let before = -1;
    await eventually(() => {
      const isStill = made.parts === before;
      before = made.parts;
      return isStill;
    });
    expect(made.parts).to.be.lessThan(400);
    close();
    await eventually(() => made.ended);
  });

  it('stops when the caller is no longer authorized', async () => {
    let counted = true;
    const { made, response, close } = await serve(() => Promise.resolve(counted));
    response.resume();
    await eventually(() => made.parts > 20);
    counted = false;
    const [error] = (await once(response, 'error').catch((thrown: unknown) => [thrown])) as [Error];
    expect(error).to.have.property('code', 'ECONNRESET');
    expect(response.complete).to.equal(false);
    await eventually(() => made.ended);
    close();
  });
});
