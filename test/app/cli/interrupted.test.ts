import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { svc, type Called } from './command-line.ts';

describe('a command that Ctrl-C interrupts before the response', () => {
  /** Interrupts a command as soon as it has sent a request to a service that never responds. */
  async function interrupted(words: readonly string[], input = ''): Promise<Called> {
    const interrupt = new AbortController();
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      socket.once('data', () => interrupt.abort());
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      const token = `x.${Buffer.from('{"sub":"agent-1"}').toString('base64url')}.x`;
      const env = { SVC_URL: `http://127.0.0.1:${port}`, SVC_TOKEN: token };
      return await svc(words, { env, input, signal: interrupt.signal });
    } finally {
      for (const socket of sockets) socket.destroy();
      server.close();
    }
  }

  for (const words of [
    ['tasks', 'list', '--all'],
    ['tasks', 'create', '--title', 'One', '--cron', '* * * * *'],
    ['tasks', 'run', '01a1fc11-0505-734a-8920-9c4c55a40f65', '--wait', '60'],
    ['apply', '--file', '-'],
    ['release'],
  ]) {
    it(`exits with 1: svc ${words.join(' ')}`, async () => {
      const { code, out, err } = await interrupted(words, 'set: one\ntasks: []\n');
      expect(code).to.equal(1);
      expect(out).to.equal('');
      expect(err).to.match(/^svc: interrupted/);
    });
  }

  for (const words of [
    ['apply', '--file', '-'],
    ['tasks', 'create', '--file', '-'],
    ['agents', 'credentials', '01a1fc11-0505-734a-8920-9c4c55a40f65', '--secret-from-input'],
  ]) {
    it(`stops waiting for input: svc ${words.join(' ')}`, async () => {
      const interrupt = new AbortController();
      const input = new PassThrough();
      // As soon as the input is read.
      input.on('newListener', (event) => {
        if (event === 'readable' || event === 'data') queueMicrotask(() => interrupt.abort());
      });
      const { code, err } = await svc(words, { env: {}, input, signal: interrupt.signal });
      expect(code).to.equal(1);
      expect(err).to.equal('svc: interrupted; nothing was done\n');
    });
  }

  for (const words of [
    ['runs', 'follow'],
    ['runs', 'follow', 'ce89cf0f-0505-734a-8920-9c4c55a40f65'],
    ['events', 'tail', '--follow'],
    ['streams', 'tail', 'operations'],
    ['audit', '--follow'],
  ]) {
    it(`exits with 0 while following: svc ${words.join(' ')}`, async () => {
      expect(await interrupted(words)).to.deep.include({ code: 0, err: '' });
    });
  }
});
