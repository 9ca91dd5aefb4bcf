import { type Db, MongoServerError } from 'mongodb';
import { isUnsupportedOption } from './driver-errors.ts';

/** Actions that the adapters need on every collection; the role readWrite has them all. */
const NEEDED = ['find', 'insert', 'update', 'remove', 'createIndex', 'dropCollection'];

/** The server's code for a command that it does not know. */
const COMMAND_NOT_FOUND = 59;

/** The part of the response to `connectionStatus` that is used here. */
interface AuthInfo {
  readonly authenticatedUsers?: readonly unknown[];
  readonly authenticatedUserPrivileges?: readonly {
    readonly resource: {
      readonly db?: string;
      readonly collection?: string;
      readonly anyResource?: boolean;
    };
    readonly actions: readonly string[];
  }[];
}

/** Whether the user may read and write the database. True if the server does not say, or has no users. */
export async function hasRights(db: Db): Promise<boolean> {
  const about = await authInfoOf(db);
  if (about === null || (about.authenticatedUsers ?? []).length === 0) return true;
  const allowed = new Set<string>();
  for (const { resource, actions } of about.authenticatedUserPrivileges ?? []) {
    const { db: database, collection, anyResource } = resource;
    const isDatabase = database === db.databaseName || database === '';
    if (anyResource !== true && !(isDatabase && collection === '')) continue;
    for (const action of actions) allowed.add(action);
  }
  return NEEDED.every((action) => allowed.has(action));
}

/** The server's response about the user; null if it does not know the command or its option. */
async function authInfoOf(db: Db): Promise<AuthInfo | null> {
  try {
    const status = await db.command({ connectionStatus: 1, showPrivileges: true });
    return (status['authInfo'] ?? {}) as AuthInfo;
  } catch (error) {
    const isUnknown = error instanceof MongoServerError && error.code === COMMAND_NOT_FOUND;
    if (isUnknown || isUnsupportedOption(error)) return null;
    throw error;
  }
}
