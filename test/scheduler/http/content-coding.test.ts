import { expect } from 'chai';
import { Readable } from 'node:stream';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, constants } from 'node:zlib';
import { bothCallers, callersHarness } from './callers.ts';

const text = 'Grüße';
const utf8 = Buffer.from(text);
const mebibyte = 1024 * 1024;

function answerOf(body: Buffer, headers: readonly string[], status = '200 OK'): Buffer {
  const lines = [`HTTP/1.1 ${status}`, `Content-Length: ${String(body.length)}`, ...headers];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]);
}

/** The bytes that streams deliver during work: those of responses, and those that each coding decodes. */
async function streamedBytes(work: () => Promise<void>): Promise<number> {
  const push = Object.getOwnPropertyDescriptor(Readable.prototype, 'push');
  const original = push?.value as (...args: unknown[]) => boolean;
  let bytes = 0;
  Readable.prototype.push = function (this: Readable, ...args: unknown[]) {
    if (Buffer.isBuffer(args[0])) bytes += args[0].length;
    return original.apply(this, args);
  };
  try {
    await work();
  } finally {
    Readable.prototype.push = original;
  }
  return bytes;
}

const coded: readonly (readonly [coding: string, body: Buffer])[] = [
  ['gzip', gzipSync(utf8)],
  ['x-gzip', gzipSync(utf8)],
  ['GZip', gzipSync(utf8)],
  ['gzip', Buffer.concat([gzipSync(utf8.subarray(0, 3)), gzipSync(utf8.subarray(3))])],
  ['deflate', deflateSync(utf8)],
  ['deflate', deflateRawSync(utf8)],
  ['br', brotliCompressSync(utf8)],
  ['gzip, br', brotliCompressSync(gzipSync(utf8))],
  ['br, identity, deflate', deflateRawSync(brotliCompressSync(utf8))],
  ['identity', utf8],
];

describe('a compressed response', () => {
  const { server, caller } = callersHarness();

  for (const name of bothCallers) {
    for (const [index, [coding, body]] of coded.entries()) {
      it(`to ${name} in ${coding} (${index}) is decompressed`, async () => {
        const sent = answerOf(body, [`Content-Encoding: ${coding}`]);
        const { origin } = await server((_, socket) => socket.write(sent));
        expect(await caller(name).call(origin)).to.include({ status: 200, text });
      });
    }

    it(`to ${name} with two coding headers is decompressed`, async () => {
      const body = brotliCompressSync(gzipSync(utf8));
      const sent = answerOf(body, ['Content-Encoding: gzip', 'Content-Encoding: br']);
      const { origin } = await server((_, socket) => socket.write(sent));
      expect((await caller(name).call(origin)).text).to.equal(text);
    });

    it(`to ${name} with an error is decompressed`, async () => {
      const headers = ['Content-Encoding: gzip', 'Content-Type: text/plain; charset=iso-8859-15'];
      const body = gzipSync(Buffer.from('5 \u00a4 missing', 'latin1'));
      const { origin } = await server((_, socket) =>
        socket.write(answerOf(body, headers, '400 Bad')),
      );
      expect((await caller(name).call(origin)).text).to.match(/5 € missing$/);
    });

    it(`to ${name} with an error in an unknown coding names the coding`, async () => {
      const sent = answerOf(Buffer.from([0x28, 0xb5]), ['Content-Encoding: zstd'], '400 Bad');
      const { origin } = await server((_, socket) => socket.write(sent));
      expect((await caller(name).call(origin)).text).to.match(
        /\(body with Content-Encoding zstd\)$/,
      );
    });

    it(`to ${name} may have an empty body`, async () => {
      const sent = answerOf(Buffer.alloc(0), ['Content-Encoding: gzip']);
      const { origin } = await server((_, socket) => socket.write(sent));
      expect(await caller(name).call(origin)).to.include({ status: 200, text: '' });
    });
  }

  it('in an unknown coding is returned unchanged with its coding', async () => {
    const body = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
    const headers = ['Content-Encoding: zstd, gzip', 'Content-Type: text/html; charset=latin1'];
    const { origin } = await server((_, socket) => socket.write(answerOf(gzipSync(body), headers)));
    const { result } = await caller('http.request').call(origin);
    expect(result).to.deep.include({
      status: 200,
      body: body.toString('base64'),
      body_encoding: 'base64',
      content_encoding: 'zstd',
    });
  });

  it('to HEAD has no body', async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 99\r\n\r\n';
    const { origin } = await server((_, socket) => socket.write(head));
    const { result } = await caller('http.request').call(origin, { method: 'HEAD' });
    expect(result).to.deep.include({ status: 200, body: null });
  });

  const broken: readonly (readonly [what: string, coding: string, body: Buffer])[] = [
    ['is no gzip', 'gzip', utf8],
    ['is no br', 'br', Buffer.from('}}}}}')],
    ['is cut', 'gzip', gzipSync(utf8).subarray(0, -9)],
  ];
  for (const [what, coding, body] of broken) {
    it(`that ${what} fails with a message`, async () => {
      const sent = answerOf(body, [`Content-Encoding: ${coding}`]);
      const { origin } = await server((_, socket) => socket.write(sent));
      const { error } = await caller('http.request').call(origin);
      expect(error).to.match(new RegExp(`the response body is not valid ${coding}: `));
      expect(await caller('a webhook').call(origin)).to.include({ status: 200, error: null });
    });
  }

  const zeros = Buffer.alloc(64 * mebibyte);
  const quickly = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
  /** Few bytes that decode to many, and many that decode to nothing. */
  const bombs: readonly (readonly [coding: string, body: () => Buffer])[] = [
    ['gzip', () => gzipSync(zeros, { level: 1 })],
    ['deflate', () => deflateRawSync(zeros, { level: 1 })],
    ['br', () => brotliCompressSync(zeros, quickly)],
    ['gzip, gzip', () => gzipSync(gzipSync(zeros, { level: 1 }))],
    ['gzip', () => Buffer.alloc(32 * mebibyte, gzipSync(''))],
  ];
  for (const [index, [coding, body]] of bombs.entries()) {
    for (const name of bothCallers) {
      it(`to ${name} that is a ${coding} bomb (${index}) is truncated, whatever its status`, async () => {
        const bomb = body();
        for (const status of ['200 OK', '500 Fault']) {
          const sent = answerOf(bomb, [`Content-Encoding: ${coding}`, 'Connection: close'], status);
          const { origin } = await server((_, socket) => socket.write(sent));
          const streamed = await streamedBytes(async () => {
            const { result, text: kept } = await caller(name).call(origin);
            expect(kept.length, status).to.be.at.most(mebibyte);
            if (name === 'http.request' && status === '200 OK')
              expect(result['truncated']).to.equal(true);
          });
          expect(streamed).to.be.within(1, 8 * mebibyte);
        }
      });
    }
  }
});
