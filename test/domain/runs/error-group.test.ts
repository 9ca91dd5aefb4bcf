import { expect } from 'chai';
import { errorGroupOf } from '../../../domain/runs/error-group.ts';
import { cpuMs } from '../../support/cpu-time.ts';

const textOf = (message: string): string => errorGroupOf(message).text;

describe('the group of an error', () => {
  it('is the same for messages that differ in ids, times, addresses and amounts', () => {
    const alike: readonly (readonly [text: string, ...messages: string[]])[] = [
      [
        'order <id> is unknown',
        'order 01a1fc11-0505-734a-8920-9c4c55a40f65 is unknown',
        'order 01A1FC11-0505-734A-8920-9C4C55A40F66 is unknown',
        'order 9f86d081884c7d65 is unknown',
        'order 01ARZ3NDEKTSV4RRFFQ69G5FAV is unknown',
      ],
      ['timed out after <n> ms', 'timed out after 500 ms', 'timed out after 1,234.5 ms'],
      ['timed out after <n>ms', 'timed out after 404ms', 'timed out after 3ms'],
      [
        'connect ECONNREFUSED <address>',
        'connect ECONNREFUSED 127.0.0.1:8080',
        'connect ECONNREFUSED 10.0.0.7:443',
      ],
      [
        'late since <time>',
        'late since 2026-11-26T17:30:00.123Z',
        'late since 2026-11-26 17:30+02:00',
      ],
      ['attempt <n> of <n>', 'attempt 3 of 5', 'attempt 12 of 20'],
    ];
    for (const [text, ...messages] of alike) {
      for (const message of messages) expect(textOf(message), message).to.equal(text);
      expect(new Set(messages.map((message) => errorGroupOf(message).id)).size).to.equal(1);
    }
  });

  it('distinguishes HTTP status codes, names and words', () => {
    const different = [
      'responded with 404',
      'responded with 503',
      'step2: no such table',
      'step3: no such table',
      'cafe is closed',
      'facade is closed',
    ];
    expect(different.map(textOf)).to.deep.equal(different);
  });

  it('takes the first line, at most 200 characters of well-formed text', () => {
    expect(textOf('  it broke\n    at line 12')).to.equal('it broke');
    expect(textOf('')).to.equal('');
    expect(textOf(`${'x'.repeat(199)}😀`)).to.equal(`${'x'.repeat(199)}\ufffd`);
    expect(textOf('y'.repeat(5000))).to.have.length(200);
  });

  it('is found quickly, whatever the message', async () => {
    const spent = await cpuMs(() => {
      for (const part of ['1.', '0a', '1:', '2026-01-01T', 'a-', '1 ', '<']) {
        errorGroupOf(part.repeat(100_000));
      }
    });
    expect(spent).to.be.lessThan(500);
  });
});
