import { expect } from 'chai';
import { Secrets } from '../../../domain/pipeline/secrets.ts';

describe('a secret', () => {
  const values = new Map([
    ['KEY', 'pa"ss wörd'],
    ['LONG', 'pa"ss wörd and more'],
    ['PIN', '1234'],
    ['EMPTY', ''],
    ['ODD', 'p@ss word:1/x$é|"'],
    ['UP', 'a/../b'],
  ]);

  it('is masked once it was given out', () => {
    const secrets = new Secrets((name) => values.get(name));
    expect(secrets.maskText('PIN 1234')).to.equal('PIN 1234');
    expect(secrets.get('PIN')).to.equal('1234');
    expect(secrets.maskText('PIN 1234, 12345')).to.equal('PIN ***, ***5');
  });

  it('is masked before it was given out, when it is expected', () => {
    const secrets = new Secrets((name) => values.get(name));
    secrets.expect('PIN');
    secrets.expect('UNKNOWN');
    expect(secrets.maskText('1234')).to.equal('***');
  });

  it('is masked in values, keys and numbers, at any depth', () => {
    const secrets = new Secrets((name) => values.get(name));
    secrets.get('PIN');
    expect(secrets.mask({ a: ['x1234y', { '1234': 1234 }], b: 12345, c: null })).to.deep.equal({
      a: ['x***y', { '***': '***' }],
      b: 12345,
      c: null,
    });
  });

  it('is masked where it is escaped', () => {
    const secrets = new Secrets((name) => values.get(name));
    const value = secrets.get('KEY');
    const forms = [
      JSON.stringify({ value }),
      `https://x/?k=${encodeURIComponent(value)}`,
      Buffer.from(value).toString('base64'),
    ];
    for (const form of forms) expect(secrets.maskText(form)).to.match(/\*\*\*/);
    expect(secrets.maskText(forms.join(' '))).not.to.match(/pa|cGE/);
  });

  for (const encoding of ['base64', 'base64url'] as const) {
    it(`is masked within a longer text in ${encoding}, wherever it begins and ends`, () => {
      const secrets = new Secrets(() => 'q?~\u00ff>s3cret-t0ken');
      const value = secrets.get('KEY');
      for (const before of ['', 'a', 'ab', 'user:', 'admin:']) {
        for (const after of ['', 'y', 'yz', ':xyz']) {
          const text = Buffer.from(before + value + after).toString(encoding);
          const masked = secrets.maskText(`Basic ${text} and more`);
          expect(masked, before + after).to.match(
            /^Basic [\w+/-]{0,12}\*\*\*[\w+/=-]{0,9} and more$/,
          );
        }
      }
    });
  }

  it('that is short masks nothing else for what Base64 makes of it', () => {
    const secrets = new Secrets(() => 'abc');
    secrets.get('KEY');
    // What begins or ends with a part of it.
    expect(secrets.maskText('hYm xhY mM')).to.equal('hYm xhY mM');
  });

  it('that is part of another does not leave the rest', () => {
    const secrets = new Secrets((name) => values.get(name));
    secrets.get('KEY');
    secrets.get('LONG');
    expect(secrets.maskText(`<${values.get('LONG') ?? ''}>`)).to.equal('<***>');
  });

  it('that is empty masks nothing', () => {
    const secrets = new Secrets((name) => values.get(name));
    secrets.get('EMPTY');
    expect(secrets.maskText('text')).to.equal('text');
  });

  it('is masked as it stands in the path, the query and the parameters of an address', () => {
    const secrets = new Secrets((name) => values.get(name));
    const value = secrets.get('ODD');
    const url = new URL(`https://a.example/${value}?q=${value}`);
    expect(secrets.maskText(url.href)).to.equal('https://a.example/***?q=***');
    url.searchParams.append('p', value);
    expect(secrets.maskText(url.href)).to.equal('https://a.example/***?q=***&p=***');
  });

  it('masks nothing else for what an address leaves of it', () => {
    const secrets = new Secrets((name) => values.get(name));
    secrets.get('UP');
    expect(secrets.maskText('a text of b')).to.equal('a text of b');
  });
});
