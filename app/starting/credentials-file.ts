import { join } from 'node:path';

/** The file of the first admin's credentials in a data directory. */
export function credentialsFile(directory: string): string {
  return join(directory, 'admin-credentials.json');
}
