import { handle, type CommandContext } from '../../../domain/handle.ts';
import { nameBasedId } from '../../../domain/ids.ts';
import { namespaceOf } from '../../../domain/namespaces/namespace.ts';
import { SecretError } from '../../../domain/secrets/secret-source.ts';
import { resealSecret, secretFold, type SecretState } from '../../../domain/secrets/secret.ts';
import { idOf } from '../../../domain/streams.ts';
import {
  secretsByName,
  secretsProjection,
  type SecretDocument,
} from '../../../projections/views/secrets.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { endpoint, type Endpoint } from '../../endpoint.ts';
import { requirePassed } from '../../positions.ts';
import { SecretKeyRotated } from '../../schemas/secret-schemas.ts';

const PAGE = 200;

type Resealed = Pick<SecretKeyRotated, 'resealed' | 'unopened'>;

const rotate = endpoint('POST /secrets/rotate-key', {
  operationId: 'rotateSecretsKey',
  summary: 'Encrypts the data keys of all secrets with a new key, while the secrets stay in use',
  scopes: ['admin'],
  responses: { 200: SecretKeyRotated },
  async handle({ dependencies, context }) {
    const { secretStore } = dependencies;
    const generated = secretStore.keyring.rotate();
    const done = await resealAll(dependencies, context);
    return { body: { key_id: secretStore.cipher.keyId, generated, ...done } };
  },
});

export const secretKeyEndpoints: readonly Endpoint[] = [rotate];

/**
 * Encrypts the data key of every secret with the present key, each in one append. After a crash, repeating the command
 * encrypts the remaining data keys. Until then, both keys are needed to decrypt.
 * @returns how many were encrypted with another key, and which cannot be decrypted
 */
async function resealAll(
  dependencies: ApiDependencies,
  context: CommandContext,
): Promise<Resealed> {
  const { store, readModel, secretStore } = dependencies;
  const { cipher, stored } = secretStore;
  await requirePassed(dependencies, [secretsProjection], await store.head());
  const { keyId } = cipher;
  const unopened: string[] = [];
  let resealed = 0;
  for (let offset = 0; ; offset += PAGE) {
    const query = { filters: [], sort: secretsByName, limit: PAGE, offset, counted: null };
    const { documents, hasMore } = await readModel.list(secretsProjection, query);
    for (const { key, text } of documents) {
      const stream = `secret-${key}`;
      const commandId = nameBasedId('reseal', context.commandId, key);
      const decide = (state: SecretState) =>
        resealSecret(state, (sealed, of) =>
          sealed.key_id === keyId ? null : cipher.reseal(sealed, of),
        );
      try {
        const own = { ...context, commandId };
        const handled = await handle({ store, stream, fold: secretFold, decide, context: own });
        stored.learn(idOf(stream), handled);
        resealed += handled.events.length;
      } catch (error) {
        if (!(error instanceof SecretError)) throw error;
        const secret = JSON.parse(text) as SecretDocument;
        unopened.push(`${namespaceOf(secret)}/${secret.name}`);
      }
    }
    if (!hasMore) return { resealed, unopened };
  }
}
