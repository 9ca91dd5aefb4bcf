import { expect } from 'chai';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConfiguration, type Configuration } from '../../../app/configuration/configuration.ts';
import { jwtKeys, webhookSecrets } from '../../../app/starting/keys.ts';
import { silent } from '../../../observability/telemetry.ts';
import { withoutHardLinks } from '../../support/hard-links.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('the signing keys', () => {
  const directory = useTemporaryDirectory();

  const configuration = (env = {}): Configuration =>
    readConfiguration({ SVC_DATA_DIR: join(directory(), 'data'), ...env });

  const keys = (env = {}): ReturnType<typeof jwtKeys> => jwtKeys(configuration(env), silent.log);

  const file = (): string => join(directory(), 'data', 'jwt-secret.key');

  it('are those of the settings', () => {
    const current = 'c'.repeat(32);
    const previous = 'p'.repeat(32);
    const { jwtKey, previousJwtKey } = keys({
      JWT_SECRET_KEY: current,
      JWT_PREVIOUS_SECRET_KEY: previous,
    });
    expect(jwtKey.export().toString()).to.equal(current);
    expect(previousJwtKey?.export().toString()).to.equal(previous);
  });

  it('are generated and saved for their owner alone if none are set', () => {
    const { jwtKey, previousJwtKey } = keys();
    expect(previousJwtKey).to.equal(null);
    expect(jwtKey.export().toString()).to.equal(readFileSync(file(), 'utf8').trim());
    expect(statSync(file()).mode & 0o777).to.equal(0o600);
    expect(jwtKey.symmetricKeySize).to.be.at.least(32);
    expect(readdirSync(join(directory(), 'data'))).to.deep.equal(['jwt-secret.key']);
  });

  it('are the same after a restart, and for all processes over one directory', () => {
    const { jwtKey } = keys();
    expect(keys().jwtKey.equals(jwtKey)).to.equal(true);
  });

  it('are generated on a file system without hard links too', async () => {
    await withoutHardLinks(() => {
      const { jwtKey } = keys();
      expect(keys().jwtKey.equals(jwtKey)).to.equal(true);
      expect(statSync(file()).mode & 0o777).to.equal(0o600);
      expect(readdirSync(join(directory(), 'data'))).to.deep.equal(['jwt-secret.key']);
    });
  });

  it('are rejected, and not replaced, if the file has no valid key', () => {
    mkdirSync(join(directory(), 'data'));
    writeFileSync(file(), 'short');
    expect(() => keys()).to.throw(/has no key of 32 bytes or more/);
    expect(readFileSync(file(), 'utf8')).to.equal('short');
  });
});

describe('the secrets of webhooks', () => {
  const secrets = (env: Record<string, string>): ReturnType<typeof webhookSecrets> => {
    const configuration = readConfiguration(env);
    return webhookSecrets(configuration, jwtKeys(configuration, silent.log));
  };
  const one = { JWT_SECRET_KEY: 'a'.repeat(32) };
  const other = { JWT_SECRET_KEY: 'b'.repeat(32) };
  const own = { SVC_WEBHOOK_KEY: 'w'.repeat(32) };

  it('have 32 bytes and differ by agent and version', () => {
    const secretOf = secrets(one);
    const made = [secretOf('a', 1), secretOf('a', 2), secretOf('b', 1)];
    expect(new Set(made).size).to.equal(3);
    for (const secret of made) {
      expect(secret).to.match(/^whsec_/);
      expect(Buffer.from(secret.slice('whsec_'.length), 'base64')).to.have.length(32);
    }
  });

  it('are the same in every process with the same key', () => {
    expect(secrets(one)('a', 1)).to.equal(secrets(one)('a', 1));
    expect(secrets(one)('a', 1)).to.not.equal(secrets(other)('a', 1));
  });

  it('do not change with the signing key if they have their own key', () => {
    expect(secrets({ ...one, ...own })('a', 1)).to.equal(secrets({ ...other, ...own })('a', 1));
    expect(secrets({ ...one, ...own })('a', 1)).to.not.equal(secrets(one)('a', 1));
  });

  it('are rejected with a short key', () => {
    expect(() => readConfiguration({ SVC_WEBHOOK_KEY: 'short' })).to.throw(/SVC_WEBHOOK_KEY/);
  });
});
