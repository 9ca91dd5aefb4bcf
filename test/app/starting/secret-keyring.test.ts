import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SecretKeyring } from '../../../app/starting/secret-keyring.ts';
import { silent } from '../../../observability/telemetry.ts';
import { KeyCipher } from '../../../stores/secrets/key-cipher.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';

describe('the keys of secrets', () => {
  let directory: TemporaryDirectory;
  beforeEach(async () => {
    directory = await makeTemporaryDirectory();
  });
  afterEach(() => directory.remove());

  const data = (): string => join(directory.path, 'data');
  const keyring = (given?: () => readonly Buffer[] | undefined): SecretKeyring =>
    new SecretKeyring({ directory: data(), given: given ?? (() => undefined), log: silent.log });

  it('are generated with the first secret, readable only by their owner', () => {
    const keys = keyring();
    expect(keys.known).to.deep.equal([]);
    const key = keys.present();
    const file = join(data(), 'secrets-1.key');
    expect(readFileSync(file, 'utf8')).to.equal(key.toString('base64'));
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect(readdirSync(data())).to.deep.equal(['secrets-1.key']);
    expect(keyring().present()).to.deep.equal(key);
  });

  it('remain known when a new one is generated, which then encrypts in every process', () => {
    const [one, other] = [keyring(), keyring()];
    const first = one.present();
    expect(other.present()).to.deep.equal(first);
    expect(one.rotate()).to.equal(true);
    const [second] = one.known;
    expect(one.known).to.deep.equal([second, first]);
    expect(other.present()).to.deep.equal(second);
  });

  it('that one process generates decrypt in the others at once', () => {
    const [one, other] = [keyring(), keyring()];
    one.present();
    expect(other.known).to.have.lengthOf(1);
    one.rotate();
    const sealed = new KeyCipher(one).seal('hush', 'a');
    expect(new KeyCipher(other).open(sealed, 'a')).to.equal('hush');
  });

  it('are given by SVC_SECRETS_KEY, and then never generated', () => {
    const given = [randomBytes(32), randomBytes(32)];
    const keys = keyring(() => given);
    expect(keys.present()).to.equal(given[0]);
    expect(keys.rotate()).to.equal(false);
    expect(keys.known).to.deep.equal(given);
  });

  it('are not replaced if a file is damaged', () => {
    keyring().present();
    writeFileSync(join(data(), 'secrets-1.key'), 'nonsense');
    expect(() => keyring().present()).to.throw(/secrets-1\.key has no key of 32 bytes in Base64/);
    expect(readdirSync(data())).to.deep.equal(['secrets-1.key']);
  });
});
