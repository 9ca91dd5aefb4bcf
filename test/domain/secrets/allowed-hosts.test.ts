import { expect } from 'chai';
import { allowsHost, hostEntryIssue } from '../../../domain/secrets/allowed-hosts.ts';

describe('the hosts of a secret', () => {
  const table: readonly (readonly [entry: string, allowed: string[], refused: string[]])[] = [
    ['*', ['https://a.example', 'http://10.0.0.1:81'], []],
    [
      'api.example.com',
      ['https://api.example.com', 'http://API.example.com:8080/x', 'https://api.example.com./'],
      [
        'https://example.com',
        'https://x.api.example.com',
        'https://api.example.com.evil.example',
        'https://api.example.com@evil.example/',
        'https://evil.example/api.example.com',
      ],
    ],
    [
      'api.example.com:443',
      ['https://api.example.com', 'http://api.example.com:443'],
      ['http://api.example.com', 'https://api.example.com:8443'],
    ],
    [
      '*.example.com',
      ['https://a.example.com', 'https://a.b.example.com'],
      ['https://example.com', 'https://badexample.com'],
    ],
    ['10.0.0.1', ['http://10.0.0.1', 'http://0x0a.0.0.1:81'], ['http://10.0.0.10', 'http://a.b']],
    ['[fd00::1]:8200', ['http://[fd00:0::1]:8200'], ['http://[fd00::1]', 'http://[fd00::2]:8200']],
    ['fd00::1', ['http://[fd00::1]', 'http://[fd00::1]:81'], ['http://[fd00::2]']],
    ['job_worker', ['http://job_worker:81'], ['http://job-worker']],
    ['BÜCHER.example', ['https://xn--bcher-kva.example'], ['https://bucher.example']],
  ];
  for (const [entry, allowed, refused] of table) {
    it(`are those that ${entry} means`, () => {
      expect(hostEntryIssue(entry)).to.equal(null);
      const passing = [...allowed, ...refused].filter((url) => allowsHost([entry], new URL(url)));
      expect(passing).to.deep.equal(allowed);
    });
  }

  it('are none without an entry', () => {
    expect(allowsHost([], new URL('https://a.example'))).to.equal(false);
  });

  for (const entry of [
    ...[
      'host!',
      'a..example',
      'a;b',
      '',
      '**',
      'https://a.example',
      'a.example/',
      'a.example/x',
      'u@a.example',
      'a.example:0',
    ],
    ...[
      'a.example:65536',
      'a.example:',
      '*.10.0.0.1',
      'a b',
      '*.',
      'a.*',
      '[fd00::1',
      'a.example?x',
    ],
  ]) {
    it(`cannot be ${JSON.stringify(entry)}`, () => {
      expect(hostEntryIssue(entry)).to.match(/^must be \*, a name/);
    });
  }
});
