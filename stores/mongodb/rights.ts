import { type Db, type Document, MongoServerError } from 'mongodb';
import { isUnsupportedOption } from './driver-errors.ts';

/** Actions that the adapters need on every collection; the role readWrite has them all. */
const NEEDED = ['find', 'insert', 'update', 'remove', 'createIndex', 'dropCollection'];

/** The server's code for a command that it does not know. */
const COMMAND_NOT_FOUND = 59;

/** Whether the user may read and write the database. True where the server does not tell, or knows no users. */
export async function hasRights(db: Db): Promise<boolean> {
  let status: Document;
  try {
    status = await db.command({ connectionStatus: 1, showPrivileges: true });
  } catch (error) {
    const isUnknown = error instanceof MongoServerError && error.code === COMMAND_NOT_FOUND;
    if (isUnknown || isUnsupportedOption(error)) return true;
    throw error;
  }
  const { authenticatedUsers = [], authenticatedUserPrivileges: privileges = [] } =
    status['authInfo'] ?? {};
  if (authenticatedUsers.length === 0) return true;
  const allowed = new Set<string>();
  for (const { resource, actions } of privileges) {
    const { db: database, collection, anyResource } = resource;
    const isDatabase = database === db.databaseName || database === '';
    if (anyResource === true || (isDatabase && collection === '')) {
      for (const action of actions) allowed.add(action);
    }
  }
  return NEEDED.every((action) => allowed.has(action));
}
