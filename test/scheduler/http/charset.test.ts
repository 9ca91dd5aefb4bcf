import { expect } from 'chai';
import { bothCallers, callersHarness } from './callers.ts';

const utf16be = (text: string): Buffer => Buffer.from(text, 'utf16le').swap16();
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');
const bytes = (...values: number[]): Buffer => Buffer.from(values);

/** Text bodies. Most are also valid in UTF-8, with another meaning. */
const texts: readonly (readonly [type: string, body: Buffer, text: string])[] = [
  ['text/plain; charset=utf-16le', Buffer.from('AB日本', 'utf16le'), 'AB日本'],
  ['text/plain; charset=UTF-16LE', Buffer.from('\ufeffAB', 'utf16le'), 'AB'],
  ['text/plain; charset=utf-16be', utf16be('AB'), 'AB'],
  ['text/plain; charset=utf-16', Buffer.from('AB', 'utf16le'), 'AB'],
  ['text/plain; charset=utf-16', utf16be('\ufeffAB'), 'AB'],
  [
    'text/plain; charset=ISO-2022-JP',
    bytes(0x1b, 0x24, 0x42, 0x46, 0x7c, 0x4b, 0x5c, 0x1b, 0x28, 0x42),
    '日本',
  ],
  ['text/html;charset="iso-8859-1"', Buffer.from('é'), 'Ã©'],
  ["text/html; charset='iso-8859-15'", bytes(0xa4), '€'],
  ['text/html; charset=iso-8859-1', bytes(0x93, 0x80, 0x94, 0x81), '“€”\x81'],
  ['text/html; charset=us-ascii', bytes(0xe9), 'é'],
  ['text/plain; charset=shift_jis', bytes(0x93, 0xfa), '日'],
  ['text/plain; charset=gb18030', bytes(0xc4, 0xe3), '你'],
  ['text/plain; charset=koi8-r', bytes(0xf0), 'П'],
  ['text/plain; charset=utf-8', Buffer.from('\ufeffé'), 'é'],
  ['text/plain', Buffer.from('\ufeffé'), 'é'],
  ['text/plain', Buffer.from('\ufeffé', 'utf16le'), 'é'],
  ['application/xml', utf16be('\ufeff<a/>'), '<a/>'],
  ['text/plain; charset=nothing', Buffer.from('é'), 'é'],
];

describe('a text response', () => {
  const { server, caller } = callersHarness();
  const answering = async (type: string, body: Buffer, status = '200 OK'): Promise<string> => {
    const head = `HTTP/1.1 ${status}\r\nContent-Length: ${String(body.length)}\r\n`;
    const answer = Buffer.concat([Buffer.from(`${head}Content-Type: ${type}\r\n\r\n`), body]);
    return (await server((_, socket) => socket.write(answer))).origin;
  };

  for (const [index, [type, body, text]] of texts.entries()) {
    for (const name of bothCallers) {
      it(`of ${type} (${index}) is decoded by ${name} in the named charset`, async () => {
        const origin = await answering(type, body);
        expect((await caller(name).call(origin)).text).to.equal(text);
      });
    }

    it(`of ${type} (${index}) is decoded in an error message too`, async () => {
      const origin = await answering(type, body, '400 Bad');
      const { error } = await caller('http.request').call(origin);
      expect(error).to.equal(`GET ${origin}/ answered 400: ${text}`);
    });
  }

  it('is parsed if it is JSON in another charset', async () => {
    for (const [type, body] of [
      ['application/json; charset=utf-16le', Buffer.from('\ufeff{"a":"é"}', 'utf16le')],
      ['application/json', Buffer.from('\ufeff{"a":"é"}')],
      ['application/problem+json; charset=iso-8859-1', latin1('{"a":"é"}')],
    ] as const) {
      const { result } = await caller('http.request').call(await answering(type, body));
      expect(result['body'], type).to.deep.equal({ a: 'é' });
    }
  });

  it('is Base64 if it is invalid in the named charset or in UTF-8', async () => {
    for (const [type, body] of [
      ['text/plain; charset=utf-8', latin1('café')],
      ['text/plain; charset=iso-2022-jp', bytes(0x1b, 0xff)],
      ['text/plain; charset=nothing', latin1('café')],
      ['application/octet-stream', bytes(0xff, 0xfe, 0x41, 0x00)],
    ] as const) {
      const { result } = await caller('http.request').call(await answering(type, body));
      const base64 = { body: body.toString('base64'), body_encoding: 'base64' };
      expect(result, type).to.deep.include(base64);
    }
  });
});
