import type { Configuration } from './configuration.ts';
import { KEY_REMEDY, keyWeakness } from './key-strength.ts';
import { ConfigurationError, secret, type Environment } from './setting-readers.ts';

/** HS256 needs a key at least as long as its hash (RFC 7518, 3.2). */
const keyBounds = { fromBytes: 32, toBytes: 4_096 };

/** The keys of tokens and webhooks. */
type Keys = Pick<Configuration, 'jwtSecretKey' | 'jwtPreviousSecretKey' | 'webhookKey'>;

/**
 * Reads the keys. Warns about an obviously weak one.
 * @throws ConfigurationError for a missing or short key, and in production for a weak one
 */
export function keySettings(
  env: Environment,
  needs: { readonly production: boolean; readonly isDistributed: boolean },
): { readonly keys: Keys; readonly warnings: readonly string[] } {
  const keys = {
    jwtSecretKey: jwtSecretKey(env, needs),
    jwtPreviousSecretKey: secret(env, 'JWT_PREVIOUS_SECRET_KEY', keyBounds),
    webhookKey: secret(env, 'SVC_WEBHOOK_KEY', keyBounds),
  };
  const warnings = [
    ...weaknessOf('JWT_SECRET_KEY', keys.jwtSecretKey, needs.production),
    ...weaknessOf('JWT_PREVIOUS_SECRET_KEY', keys.jwtPreviousSecretKey, needs.production),
    ...weaknessOf('SVC_WEBHOOK_KEY', keys.webhookKey, needs.production),
  ];
  return { keys, warnings };
}

/**
 * Warnings about a weak key; none for a good one. The key is never shown.
 * @throws ConfigurationError in production
 */
export function weaknessOf(
  variable: string,
  key: string | undefined,
  production: boolean,
): readonly string[] {
  const weakness = key === undefined ? null : keyWeakness(key);
  if (weakness === null) return [];
  if (production) throw new ConfigurationError(variable, `${weakness}; ${KEY_REMEDY}`);
  return [`${variable} is weak and would be rejected in production: it ${weakness}; ${KEY_REMEDY}`];
}

function jwtSecretKey(
  env: Environment,
  { production, isDistributed }: { readonly production: boolean; readonly isDistributed: boolean },
): string | undefined {
  const key = secret(env, 'JWT_SECRET_KEY', keyBounds);
  if (key === undefined && (production || isDistributed)) {
    const why = production ? 'NODE_ENV=production' : 'SVC_EVENT_STORE_URL';
    throw new ConfigurationError(
      'JWT_SECRET_KEY',
      `is not set; with ${why} it must be 32 bytes or more, the same in every process`,
    );
  }
  return key;
}
