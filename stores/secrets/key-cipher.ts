import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';
import type { SealedValue, SecretCipher } from '../../domain/secrets/secret-cipher.ts';
import { SecretError } from '../../domain/secrets/secret-source.ts';

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;

/** The keys in use. The first encrypts, all of them decrypt. They may change while the service runs. */
export interface SecretKeys {
  readonly known: readonly Buffer[];
  /** The present encryption key. It is generated if there is none. */
  present(): Buffer;
  /** Reads the keys again, as another process may have added one. */
  refresh(): void;
}

/** The id of a key, by which encrypted values name it. It reveals nothing about the key. */
export function keyIdOf(key: Buffer): string {
  return createHmac('sha256', key).update('id of a key of secrets').digest('hex').slice(0, 16);
}

/** Envelope encryption: each value has its own data key, which is encrypted with a key-encryption key. */
export class KeyCipher implements SecretCipher {
  readonly #keys: SecretKeys;

  constructor(keys: SecretKeys) {
    this.#keys = keys;
  }

  get keyId(): string {
    return keyIdOf(this.#keys.present());
  }

  /** The ids of all keys. The first belongs to the key that encrypts. */
  get keyIds(): readonly string[] {
    return this.#keys.known.map(keyIdOf);
  }

  seal(value: string, context: string): SealedValue {
    const dataKey = randomBytes(KEY_BYTES);
    return {
      ...this.#sealKey(dataKey, context),
      value: encrypt(dataKey, Buffer.from(value), `value/${context}`),
    };
  }

  open(sealed: SealedValue, context: string): string {
    const dataKey = this.#openKey(sealed, context);
    return decrypt(dataKey, sealed.value, `value/${context}`).toString();
  }

  reseal(sealed: SealedValue, context: string): SealedValue {
    const dataKey = this.#openKey(sealed, context);
    return { ...sealed, ...this.#sealKey(dataKey, context) };
  }

  #sealKey(dataKey: Buffer, context: string): Pick<SealedValue, 'key_id' | 'data_key'> {
    const key = this.#keys.present();
    const key_id = keyIdOf(key);
    return { key_id, data_key: encrypt(key, dataKey, `key/${key_id}/${context}`) };
  }

  #openKey({ key_id, data_key }: SealedValue, context: string): Buffer {
    let key = this.#find(key_id);
    if (key === undefined) {
      this.#keys.refresh();
      key = this.#find(key_id);
    }
    if (key === undefined) {
      throw new SecretError(
        `a secret is encrypted with the key ${key_id}, which this process lacks: add it to SVC_SECRETS_KEY after the present key, or restore its file`,
      );
    }
    return decrypt(key, data_key, `key/${key_id}/${context}`);
  }

  #find(id: string): Buffer | undefined {
    return this.#keys.known.find((key) => keyIdOf(key) === id);
  }
}

/** @returns nonce, encrypted bytes and tag in Base64 */
function encrypt(key: Buffer, bytes: Buffer, context: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(context));
  const encrypted = Buffer.concat([cipher.update(bytes), cipher.final()]);
  return Buffer.concat([nonce, encrypted, cipher.getAuthTag()]).toString('base64');
}

/** @throws SecretError for bytes that were changed or belong to another context */
function decrypt(key: Buffer, text: string, context: string): Buffer {
  const bytes = Buffer.from(text, 'base64');
  try {
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(context));
    decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES));
    const encrypted = bytes.subarray(NONCE_BYTES, bytes.length - TAG_BYTES);
    return Buffer.concat([decipher.update(encrypted), decipher.final()]);
  } catch (error) {
    const message = 'a secret cannot be decrypted: its record was changed; set it again';
    throw new SecretError(message, false, error);
  }
}
