import { join } from 'node:path';
import { projectRoot } from './project-root.ts';

/** Two self-signed certificates for `localhost` and 127.0.0.1, valid for a hundred years, each with its key. */
export function certificate(name: 'one' | 'two'): { readonly cert: string; readonly key: string } {
  const folder = join(projectRoot, 'test/support/certificates');
  return { cert: join(folder, `${name}.cert.pem`), key: join(folder, `${name}.key.pem`) };
}
