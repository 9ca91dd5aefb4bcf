import { expect } from 'chai';
import { Secrets } from '../../../domain/pipeline/secrets.ts';
import { cpuMs } from '../../support/cpu-time.ts';

/** Masks secrets once they have been given out. */
class GivenSecrets extends Secrets {
  readonly #lookUp: (name: string) => string | undefined;

  constructor(lookUp: (name: string) => string | undefined) {
    super();
    this.#lookUp = lookUp;
  }

  get(name: string): string {
    const value = this.#lookUp(name) ?? '';
    this.hide(value);
    return value;
  }
}

describe('a secret', () => {
  const values = new Map([
    ['KEY', 'pa"ss wörd'],
    ['LONG', 'pa"ss wörd and more'],
    ['PIN', '1234'],
    ['EMPTY', ''],
    ['ODD', 'p@ss word:1/x$é|"'],
    ['UP', 'a/../b'],
  ]);

  it('is masked once given out', () => {
    const secrets = new GivenSecrets((name) => values.get(name));
    expect(secrets.maskText('PIN 1234')).to.equal('PIN 1234');
    expect(secrets.get('PIN')).to.equal('1234');
    expect(secrets.maskText('PIN 1234, 12345')).to.equal('PIN ***, ***5');
  });

  it('is masked from the beginning, if known', () => {
    expect(new Secrets(['1234']).maskText('1234')).to.equal('***');
  });

  it('is masked in values, keys and numbers, at any depth', () => {
    const secrets = new GivenSecrets((name) => values.get(name));
    secrets.get('PIN');
    expect(secrets.mask({ a: ['x1234y', { '1234': 1234 }], b: 12345, c: null })).to.deep.equal({
      a: ['x***y', { '***': '***' }],
      b: 12345,
      c: null,
    });
  });

  it('is masked if escaped', () => {
    const secrets = new GivenSecrets((name) => values.get(name));
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
    it(`is masked within a longer string in ${encoding}, at any position`, () => {
      const secrets = new GivenSecrets(() => 'q?~\u00ff>s3cret-t0ken');
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

  it('that is short masks nothing else because of its Base64', () => {
    const secrets = new GivenSecrets(() => 'abc');
    secrets.get('KEY');
    // Strings that begin or end with a part of it.
    expect(secrets.maskText('hYm xhY mM')).to.equal('hYm xhY mM');
  });

  it('that is part of another leaves nothing of it', () => {
    const secrets = new GivenSecrets((name) => values.get(name));
    secrets.get('KEY');
    secrets.get('LONG');
    expect(secrets.maskText(`<${values.get('LONG') ?? ''}>`)).to.equal('<***>');
  });

  it('that is empty masks nothing', () => {
    const secrets = new GivenSecrets((name) => values.get(name));
    secrets.get('EMPTY');
    expect(secrets.maskText('text')).to.equal('text');
  });

  it('is masked in the path, query and parameters of a URL', () => {
    const secrets = new GivenSecrets((name) => values.get(name));
    const value = secrets.get('ODD');
    const url = new URL(`https://a.example/${value}?q=${value}`);
    expect(secrets.maskText(url.href)).to.equal('https://a.example/***?q=***');
    url.searchParams.append('p', value);
    expect(secrets.maskText(url.href)).to.equal('https://a.example/***?q=***&p=***');
  });

  const odd = 'AbC"d9\\x/Z+<é>\'&😀';
  const spellings: readonly (readonly [how: string, value: string, written: string])[] = [
    ['PHP writes JSON', 'wJalr/UtnFEMI/K7', String.raw`{"e":"bad wJalr\/UtnFEMI\/K7"}`],
    [
      '.NET writes JSON',
      odd,
      String.raw`"AbC\u0022d9\\x/Z\u002B\u003C\u00E9\u003E\u0027\u0026\uD83D\uDE00"`,
    ],
    ['Python writes JSON', odd, String.raw`"AbC\"d9\\x/Z+<\u00e9>'&\ud83d\ude00"`],
    ['JSON within JSON writes it', odd, JSON.stringify(JSON.stringify({ odd }))],
    [
      'JSON within JSON within JSON writes it',
      'q"7\\x',
      JSON.stringify(JSON.stringify('"q\\"7\\\\x"')),
    ],
    ['JavaScript writes a text', odd, String.raw`'AbC\x22d9\\x\x2fZ+<\xe9>\'&😀'`],
    ['HTML names its characters', odd, 'AbC&quot;d9\\x/Z+&lt;é&gt;&apos;&amp;😀'],
    ['HTML numbers its characters', odd, 'AbC&#34;d9\\x/Z&#43;&lt;&#233;&gt;&#039;&#38;&#128512;'],
    ['XML numbers its characters', odd, 'AbC&#x22;d9\\x/Z+&lt;&#xE9;&gt;&#x27;&amp;&#x1f600;'],
    ['.NET writes HTML in JSON', 'q"7+x&y', String.raw`"q\u0026quot;7\u002Bx\u0026amp;y"`],
    [
      'an address has small hex',
      odd,
      encodeURIComponent(odd).replace(/%../g, (hex) => hex.toLowerCase()),
    ],
    ['an address has + for spaces', 'one two/é', '?q=one+two%2f%c3%a9'],
    ['JSON holds an address', 'one two/é', String.raw`"\/e?q=one%20two%2F%C3%A9"`],
    ['JSON holds its Base64', '~?~?~?~?~?', String.raw`"Basic fj9+P34\/fj9+Pw=="`],
    ['it holds escapes of its own', 'a%41&amp;\\n"z', JSON.stringify('a%41&amp;\\n"z')],
    ['a host has it', 'MySecretTenantQ7', 'getaddrinfo ENOTFOUND mysecrettenantq7.invalid'],
    ['a host has it, not being ASCII', 'GeheimBüro', 'ENOTFOUND xn--geheimbro-w9a.invalid'],
    ['a host has a part of it', 'wJalrXUtnFEMI/K7MD', 'ENOTFOUND wjalrxutnfemi'],
    ['an address loses its end of line', 's3cr3tValueNL\n', '"url":"/e?k=s3cr3tValueNL"'],
    ['an address loses lines within', 's3cr3t\nValue\tNL', '/s3cr3tValueNL'],
    ['a header loses the spaces around it', ' padded secret ', '"x-k":"padded secret"'],
    [
      'Base64 has it without the spaces around',
      '  padded secret\n',
      btoa('me:padded secret').slice(4),
    ],
  ];
  for (const [how, value, written] of spellings) {
    it(`is masked where ${how}`, () => {
      const secrets = new GivenSecrets(() => value);
      secrets.get('KEY');
      const masked = secrets.maskText(`<p>${written}</p>`);
      expect(masked).to.match(/^<p>.*\*\*\*.*<\/p>$/s);
      expect(masked).not.to.match(
        /wJalr|UtnF|AbC|d9|00e9|q.{0,9}7|two|fj9|%41|tenant|geheim|cr3t|padded|cGFk/i,
      );
    });
  }

  it('leaves its surroundings unchanged', () => {
    const secrets = new GivenSecrets(() => 'k/😀"k');
    secrets.get('KEY');
    const written = String.raw`{"a":"\u00e9\/k\/\ud83d\ude00\"k\/%C3%A9k%2F%F0%9F%98%80%22k&amp;k/😀"k"}`;
    const masked = String.raw`{"a":"\u00e9\/***\/%C3%A9***&amp;***"}`;
    expect(secrets.maskText(written)).to.equal(masked);
  });

  it('that overlaps with another leaves nothing of either', () => {
    const secrets = new GivenSecrets((name) => (name === 'ONE' ? 'abcdef' : 'defghijk'));
    secrets.get('ONE');
    secrets.get('TWO');
    expect(secrets.maskText('<abcdefghijk>')).to.equal('<***>');
  });

  it('that is short masks nothing else because of its shortened forms', () => {
    const secrets = new GivenSecrets((name) => ({ END: 'a\n', UP: 'Admin', HEX: '%41%42' })[name]);
    for (const name of ['END', 'UP', 'HEX']) secrets.get(name);
    const text = 'a banana for admin, AB';
    expect(secrets.maskText(text)).to.equal(text);
  });

  it('is found in time linear in the string', async () => {
    const secrets = new GivenSecrets((name) => `${name}/wJalrXUtnFEMI+K7MDENG"bPxRfiCY`);
    for (let each = 0; each < 50; each += 1) secrets.get(String(each));
    const text = String.raw`wJalrXUtnFEMI\u002bK7\/%2F&quot;a1b2c3d4e5f6`.repeat(6000);
    const spent = await cpuMs(() => expect(secrets.maskText(text)).to.equal(text));
    expect(spent).to.be.below(2000);
  });

  it('masks nothing else because of its URL forms', () => {
    const secrets = new GivenSecrets((name) => values.get(name));
    secrets.get('UP');
    expect(secrets.maskText('a text of b')).to.equal('a text of b');
  });
});
