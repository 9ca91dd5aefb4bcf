import { DatabaseSync } from '@photostructure/sqlite';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Describes every file of a data directory that SQLite finds damaged. */
export function damagedFiles(dataDirectory: string): string[] {
  return readdirSync(dataDirectory)
    .filter((file) => /\.(sqlite|db)$/.test(file))
    .flatMap((file) => {
      const database = new DatabaseSync(join(dataDirectory, file), { readOnly: true });
      try {
        const rows = database.prepare('PRAGMA integrity_check').all();
        const text = rows.map((row) => String(Object.values(row as object)[0])).join();
        return text === 'ok' ? [] : [`${file} is damaged: ${text}`];
      } finally {
        database.close();
      }
    });
}
