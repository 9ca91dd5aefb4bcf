import { expect } from 'chai';
import { createHash } from 'node:crypto';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import { keyWeakness } from '../../../app/configuration/key-strength.ts';

/** A good key that is the same in each run of the tests. */
const good = (seed: string): Buffer => createHash('sha256').update(seed).digest();

describe('a weak key', () => {
  const weak: readonly (readonly [key: string, says: RegExp])[] = [
    ['k'.repeat(32), /^has only 1 different bytes$/],
    ['\u00fc'.repeat(32), /^has only 2 different bytes$/],
    ['abc'.repeat(20), /^has only 3 different bytes$/],
    ['changeme'.repeat(4), /^repeats a pattern or counts up$/],
    ['0123456789'.repeat(4), /^repeats a pattern or counts up$/],
    ['abcdefghijklmnopqrstuvwxyz0123456789', /^repeats a pattern or counts up$/],
    ['first key first key first key first key', /^repeats a pattern or counts up$/],
    ['change-me-to-a-32-byte-secret-key', /^consists of common words$/],
    ['My-Super-Secret-JWT-Signing-Key-For-Production', /^consists of common words$/],
    ['openssl rand -base64 32 > jwt.secret', /^consists of common words$/],
    ['qwertyuiopasdfghjklzxcvbnm123456', /^consists of common words$/],
  ];
  for (const [key, says] of weak) {
    it(`is found: ${key.slice(0, 50)}`, () => {
      expect(keyWeakness(key)).to.match(says);
    });
  }

  for (const variable of ['JWT_SECRET_KEY', 'JWT_PREVIOUS_SECRET_KEY', 'SVC_WEBHOOK_KEY']) {
    it(`prevents the start in production, with an error that names the remedy: ${variable}`, () => {
      const strong = { JWT_SECRET_KEY: good('strong').toString('base64') };
      const env = {
        NODE_ENV: 'production',
        SVC_SECRETS_KEY: 'SnpxQldjajhubEdkbWdTOU1GSW0weVlpMlp0NHZVeFY=',
        ...strong,
        [variable]: 'k'.repeat(32),
      };
      expect(() => readConfiguration(env)).to.throw(
        `${variable} has only 1 different bytes; create one with openssl rand -base64 32`,
      );
      expect(
        readConfiguration({
          NODE_ENV: 'production',
          SVC_SECRETS_KEY: 'SnpxQldjajhubEdkbWdTOU1GSW0weVlpMlp0NHZVeFY=',
          ...strong,
        }).warnings,
      ).to.deep.equal([]);
    });

    it(`causes a warning elsewhere, which does not show the key: ${variable}`, () => {
      expect(readConfiguration({ [variable]: 'abcabcab'.repeat(4) }).warnings).to.deep.equal([
        `${variable} is weak and would be rejected in production: ` +
          'it has only 3 different bytes; create one with openssl rand -base64 32',
      ]);
    });
  }
});

describe('a random key', () => {
  it('is not weak in any common encoding', () => {
    for (let seed = 0; seed < 2_000; seed += 1) {
      const bytes = good(`${seed}`);
      const keys = [
        bytes.toString('base64'),
        bytes.toString('base64url'),
        bytes.toString('hex'),
        bytes.toString('hex').slice(0, 32),
        bytes.toString('latin1'),
      ];
      for (const key of keys) expect(keyWeakness(key), key).to.equal(null);
    }
  });

  it('may be a sentence', () => {
    expect(keyWeakness('eleven violet herons refuse to queue politely')).to.equal(null);
  });
});
