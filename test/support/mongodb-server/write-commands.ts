import {
  asDoc,
  asDocs,
  matching,
  refuseTooLarge,
  shaped,
  updated,
  upsertBase,
} from './evaluation.ts';
import { CommandError } from './command-error.ts';
import type { Table, Tables } from './storage.ts';
import { type Doc, sameBytes, throughBson } from './wire.ts';

/** insert, update, delete, findAndModify. */

/** Maximum number of statements of a command: `maxWriteBatchSize` of `hello`. */
export const MAX_STATEMENTS = 100_000;

/** Total length of a response's error messages, after which a server leaves them out. */
const MAX_MESSAGES = 1024 * 1024;

interface Change {
  readonly filter: Doc;
  readonly change: unknown;
  readonly upsert: boolean;
}

interface Changed {
  readonly before: Doc | undefined;
  readonly after: Doc | undefined;
  readonly modified: boolean;
}

export function insert(tables: Tables, namespace: string, command: Doc): Doc {
  const table = tables.open(namespace);
  let n = 0;
  const writeErrors = eachStatement(asDocs(command['documents']), command, (document) => {
    refuseTooLarge(document);
    table.put(throughBson(document), false);
    n += 1;
  });
  return { n, ...writeErrors, ok: 1 };
}

export function update(tables: Tables, namespace: string, command: Doc, now: number): Doc {
  const table = tables.open(namespace);
  const upserted: Doc[] = [];
  let n = 0;
  let nModified = 0;
  const writeErrors = eachStatement(asDocs(command['updates']), command, (statement, index) => {
    const change = {
      filter: asDoc(statement['q']),
      change: statement['u'],
      upsert: statement['upsert'] === true,
    };
    const found = matching(table, change.filter, now);
    const targets = statement['multi'] === true ? found : found.slice(0, 1);
    for (const target of targets) {
      if (replace(table, target, change, now).modified) nModified += 1;
      n += 1;
    }
    if (targets.length === 0 && change.upsert) {
      upserted.push({ index, _id: upsert(table, change, now)['_id'] });
      n += 1;
    }
  });
  return { n, nModified, ...(upserted.length > 0 && { upserted }), ...writeErrors, ok: 1 };
}

export function remove(tables: Tables, namespace: string, command: Doc, now: number): Doc {
  const table = tables.find(namespace);
  let n = 0;
  const writeErrors = eachStatement(asDocs(command['deletes']), command, (statement) => {
    const found = matching(table, asDoc(statement['q']), now);
    for (const document of statement['limit'] === 1 ? found.slice(0, 1) : found) {
      table?.remove(document);
      n += 1;
    }
  });
  return { n, ...writeErrors, ok: 1 };
}

export function findAndModify(tables: Tables, namespace: string, command: Doc, now: number): Doc {
  const table = tables.open(namespace);
  const change = {
    filter: asDoc(command['query']),
    change: command['update'],
    upsert: command['upsert'] === true,
  };
  const [target] = shaped(
    matching(table, change.filter, now),
    { sort: command['sort'], limit: 1 },
    now,
  );
  const { before, after } = modifyOne(table, target, change, command['remove'] === true, now);
  const value = command['new'] === true ? after : before;
  const [given] =
    value === undefined ? [] : shaped([value], { projection: command['fields'] }, now);
  return {
    lastErrorObject: {
      n: before === undefined && after === undefined ? 0 : 1,
      updatedExisting: before !== undefined && after !== undefined,
      ...(before === undefined && after !== undefined && { upserted: after['_id'] }),
    },
    value: given ?? null,
    ok: 1,
  };
}

function modifyOne(
  table: Table,
  target: Doc | undefined,
  change: Change,
  removing: boolean,
  now: number,
): Changed {
  if (target === undefined) {
    const after = change.upsert && !removing ? upsert(table, change, now) : undefined;
    return { before: undefined, after, modified: after !== undefined };
  }
  if (!removing) return replace(table, target, change, now);
  table.remove(target);
  return { before: target, after: undefined, modified: true };
}

function replace(table: Table, target: Doc, change: Change, now: number): Changed {
  const after = updated(target, change.change, false, now);
  const modified = !sameBytes(target, after);
  if (modified) table.put(after, true);
  return { before: target, after, modified };
}

function upsert(table: Table, change: Change, now: number): Doc {
  const document = updated(upsertBase(change.filter), change.change, true, now);
  table.put(document, false);
  return document;
}

/**
 * Runs statements; an ordered command ends at its first error, an unordered one continues.
 * @throws CommandError 16 for too many statements, or none
 */
function eachStatement(
  statements: readonly Doc[],
  command: Doc,
  run: (statement: Doc, index: number) => void,
): Doc {
  if (statements.length === 0 || statements.length > MAX_STATEMENTS) {
    const message = `Write batch sizes must be between 1 and ${MAX_STATEMENTS}. Got ${statements.length} operations.`;
    throw new CommandError(16, 'InvalidLength', message);
  }
  const errors: Doc[] = [];
  let messages = 0;
  for (const [index, statement] of statements.entries()) {
    try {
      run(statement, index);
    } catch (error) {
      // A transaction's conflict belongs to the whole command, whatever its statement.
      if (!(error instanceof CommandError) || error.labels.length > 0) throw error;
      const entry = error.writeError(index);
      const isLong = messages >= MAX_MESSAGES && errors.length >= 2;
      errors.push(isLong ? { ...entry, errmsg: '' } : entry);
      messages += isLong ? 0 : error.message.length;
      if (command['ordered'] !== false) break;
    }
  }
  return errors.length > 0 ? { writeErrors: errors } : {};
}
