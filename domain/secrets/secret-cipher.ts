import type { DataOf } from '../events/catalogue.ts';

/** An encrypted value: its data key is encrypted with the key that `key_id` names. */
export type SealedValue = DataOf<'SecretSet'>['sealed'];

/** Encrypts and decrypts values of secrets: AES-256-GCM with a data key for each. */
export interface SecretCipher {
  /** The key that new values are sealed with. */
  readonly keyId: string;
  /** @param context what the value belongs to: it opens with no other */
  seal(value: string, context: string): SealedValue;
  /** @throws SecretError for an unknown key, or a value that was changed or belongs to something else */
  open(sealed: SealedValue, context: string): string;
  /** The value with its data key sealed by the present key. @throws SecretError as `open` */
  reseal(sealed: SealedValue, context: string): SealedValue;
}
