import type * as Secrets from '../schemas/secret-schemas.ts';
import type { CallOptions } from './client-connection.ts';
import type { Api } from './client.ts';

/** Sets secrets, and shows where they may be used. Their values cannot be read. */
export const secrets = ({ ask, read, readOne, actWith }: Api) => ({
  list: read<Secrets.SecretPage, Secrets.SecretQuery>('/secrets'),
  get: readOne<Secrets.Secret, Secrets.SecretScopeQuery>('/secrets/:name'),
  set: (
    name: string,
    body: Secrets.SetSecret,
    query: Secrets.SecretScopeQuery = {},
    call: CallOptions = {},
  ) =>
    ask<Secrets.Secret>({
      ...call,
      method: 'PUT',
      path: `/secrets/${encodeURIComponent(name)}`,
      query,
      body,
    }),
  remove: actWith<Secrets.SecretDeleted, Secrets.SecretScopeQuery>('DELETE', '/secrets/:name'),
  rotateKey: (call: CallOptions = {}) =>
    ask<Secrets.SecretKeyRotated>({ ...call, method: 'POST', path: '/secrets/rotate-key' }),
});
