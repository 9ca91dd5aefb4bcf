import { DatabaseSync } from '@photostructure/sqlite';

/** The version of the SQLite that this process would open files with. */
export function sqliteVersion(): string {
  const database = new DatabaseSync(':memory:');
  try {
    const row = database.prepare('SELECT sqlite_version() AS version').get();
    return String(row?.['version']);
  } finally {
    database.close();
  }
}
