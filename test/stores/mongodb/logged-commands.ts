import type { MongoServer } from '../../support/mongodb-server/server.ts';

/**
 * The commands that a stand-in has received since its log was cleared, in order. Each has its name and collection, and
 * the number of statements or documents of a write, as in `insert runs 4000`. The collection of a generation is `rows`.
 */
export function loggedCommands(server: MongoServer): readonly string[] {
  return server.log.map(({ command, collection, body }) => {
    const name = /_g\d+$/.test(collection) ? 'rows' : collection;
    const statements = body['documents'] ?? body['updates'] ?? body['deletes'];
    const parts = command === 'commitTransaction' ? [command] : [command, name];
    return [...parts, ...(Array.isArray(statements) ? [statements.length] : [])].join(' ');
  });
}
