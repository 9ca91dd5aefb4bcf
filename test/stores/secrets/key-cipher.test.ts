import { expect } from 'chai';
import { SecretError } from '../../../domain/secrets/secret-source.ts';
import { KeyCipher, keyIdOf } from '../../../stores/secrets/key-cipher.ts';
import { TestKeys } from '../../support/test-secrets.ts';

describe('a sealed secret', () => {
  const keys = new TestKeys();
  const cipher = new KeyCipher(keys);
  const sealed = cipher.seal('hush-hush', 'a');

  it('is decrypted to its value, and contains no part of it', () => {
    expect(cipher.open(sealed, 'a')).to.equal('hush-hush');
    const shown = Object.values(sealed).map((text) =>
      Buffer.from(text, 'base64').toString('latin1'),
    );
    expect(JSON.stringify([sealed, shown])).not.to.include('hush');
  });

  it('is different each time', () => {
    const again = cipher.seal('hush-hush', 'a');
    expect(again.value).not.to.equal(sealed.value);
    expect(again.data_key).not.to.equal(sealed.data_key);
  });

  it('is decrypted only in its own context', () => {
    expect(() => cipher.open(sealed, 'b')).to.throw(SecretError, 'its record was changed');
  });

  for (const field of ['data_key', 'value'] as const) {
    it(`cannot be decrypted with a changed ${field}`, () => {
      const bytes = Buffer.from(sealed[field], 'base64');
      for (const at of [0, 12, bytes.length - 1]) {
        const changed = Buffer.from(bytes);
        changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
        const text = changed.toString('base64');
        expect(() => cipher.open({ ...sealed, [field]: text }, 'a')).to.throw(SecretError);
      }
      expect(() => cipher.open({ ...sealed, [field]: '' }, 'a')).to.throw(SecretError);
    });
  }

  it('is decrypted with the old key after a rotation, and with the new one once it is encrypted again', () => {
    const [old] = keys.known;
    keys.rotate();
    expect(cipher.open(sealed, 'a')).to.equal('hush-hush');
    const resealed = cipher.reseal(sealed, 'a');
    expect(resealed).to.include({ key_id: cipher.keyId, value: sealed.value });
    keys.known = keys.known.slice(0, 1);
    expect(cipher.open(resealed, 'a')).to.equal('hush-hush');
    expect(() => cipher.open(sealed, 'a')).to.throw(
      SecretError,
      `encrypted with the key ${keyIdOf(old ?? Buffer.alloc(32))}, which this process lacks`,
    );
  });

  it('is decrypted with a key that another process has added', () => {
    const mine = new TestKeys();
    const theirs = new TestKeys();
    const made = new KeyCipher(theirs).seal('hush', 'a');
    mine.refresh = () => void (mine.known = [...theirs.known]);
    expect(new KeyCipher(mine).open(made, 'a')).to.equal('hush');
  });
});
