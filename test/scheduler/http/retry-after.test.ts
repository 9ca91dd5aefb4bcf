import { expect } from 'chai';
import { retryAfterMs } from '../../../scheduler/http/retry-after.ts';
import { bothCallers, callersHarness, NOW } from './callers.ts';

const now = Date.parse(NOW);
const minute = 60_000;

const read: readonly (readonly [values: readonly string[], milliseconds: number | undefined])[] = [
  [['37'], 37_000],
  [[' 37 '], 37_000],
  [['0'], 0],
  [['Sun, 06 Nov 1994 08:49:37 GMT'], 37_000],
  [['Sunday, 06-Nov-94 08:49:37 GMT'], 37_000],
  [['Sun Nov  6 08:49:37 1994'], 37_000],
  [['Sun Nov 06 08:49:37 1994'], 37_000],
  [['Sun, 06 Nov 1994 08:49:60 GMT'], minute],
  // Past, and more than a day ahead.
  [['Sun, 06 Nov 1994 08:00:00 GMT'], 0],
  [['Sunday, 06-Nov-93 08:49:37 GMT'], 0],
  [['Monday, 06-Nov-44 08:49:37 GMT'], 86_400_000],
  [['Monday, 06-Nov-45 08:49:37 GMT'], 0],
  [['9'.repeat(400)], 86_400_000],
  // Malformed.
  [[''], undefined],
  [['-1'], undefined],
  [['1.5'], undefined],
  [['0x10'], undefined],
  [['1e3'], undefined],
  [['37, 37'], undefined],
  [['37s'], undefined],
  [['tomorrow'], undefined],
  [['2026'], 2_026_000],
  [['1994-11-06T08:49:37Z'], undefined],
  [['06 Nov 1994 08:49:37'], undefined],
  [['Sun, 06 Nov 1994 08:49:37'], undefined],
  [['Sun, 06 Nov 1994 08:49:37 +0000'], undefined],
  [['Sun, 06 Nov 1994 08:49:37 EST'], undefined],
  [['Sun, 6 Nov 1994 08:49:37 GMT'], undefined],
  [['Wed, 31 Nov 1994 08:49:37 GMT'], undefined],
  [['Wed, 00 Nov 1994 08:49:37 GMT'], undefined],
  [['Sun, 06 Nov 1994 24:00:00 GMT'], undefined],
  [['Sun, 06 Nov 1994 08:60:00 GMT'], undefined],
  // Several.
  [['37', '37'], undefined],
  [['37', 'Sun, 06 Nov 1994 08:49:37 GMT'], undefined],
  [[], undefined],
];

describe('Retry-After', () => {
  const { server, caller } = callersHarness();

  for (const [values, milliseconds] of read) {
    const shown = JSON.stringify(values).slice(0, 80);
    it(`of ${shown} is ${milliseconds === undefined ? 'ignored' : `${milliseconds} ms`}`, () => {
      expect(retryAfterMs(values, now)).to.equal(milliseconds);
    });
  }

  it("is parsed in UTC, whatever the process's time zone", () => {
    const zone = process.env['TZ'];
    process.env['TZ'] = 'Asia/Kathmandu';
    try {
      for (const [values, milliseconds] of read.slice(3, 7)) {
        expect(retryAfterMs(values, now), String(values)).to.equal(milliseconds);
      }
    } finally {
      if (zone === undefined) delete process.env['TZ'];
      else process.env['TZ'] = zone;
    }
  });

  for (const name of bothCallers) {
    it(`is respected by ${name} as a date, and ignored if there are two`, async () => {
      let headers = 'Retry-After: Sun Nov  6 08:49:37 1994\r\n';
      const { origin } = await server((_, socket) => {
        socket.write(`HTTP/1.1 503 Busy\r\n${headers}Content-Length: 0\r\n\r\n`);
      });
      const client = caller(name);
      expect((await client.call(origin)).retryAfterMs).to.equal(37_000);
      headers = 'Retry-After: 5\r\nRetry-After: 5\r\n';
      expect((await client.call(origin)).retryAfterMs).to.equal(undefined);
    });
  }
});
