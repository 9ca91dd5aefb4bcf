import type { DataOf } from '../events/catalogue.ts';

/** An encrypted value: its data key is encrypted with the key that `key_id` names. */
export type SealedValue = DataOf<'SecretSet'>['sealed'];

/** Encrypts and decrypts values of secrets: AES-256-GCM with a data key for each. */
export interface SecretCipher {
  /** The key that encrypts new values. */
  readonly keyId: string;
  /** @param context identifies the owner of the value, which can be decrypted only with the same context */
  seal(value: string, context: string): SealedValue;
  /** @throws SecretError for an unknown key, or for a value that was changed or has another context */
  open(sealed: SealedValue, context: string): string;
  /** The value with its data key encrypted by the present key. @throws SecretError as `open` */
  reseal(sealed: SealedValue, context: string): SealedValue;
}
