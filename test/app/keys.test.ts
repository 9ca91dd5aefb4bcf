import { expect } from 'chai';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConfiguration, type Configuration } from '../../app/configuration.ts';
import { jwtKeys } from '../../app/keys.ts';
import { silent } from '../../observability/telemetry.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

describe('the keys of tokens', () => {
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

  it('are made and kept for the owner alone where none are set', () => {
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

  it('are refused, and not replaced, where the file holds none', () => {
    mkdirSync(join(directory(), 'data'));
    writeFileSync(file(), 'short');
    expect(() => keys()).to.throw(/holds no key of 32 bytes or more/);
    expect(readFileSync(file(), 'utf8')).to.equal('short');
  });
});
