import type { CommandStartedEvent, MongoClient } from 'mongodb';
import type { Telemetry } from '../../observability/telemetry.ts';

/** The commands that are counted by name; all others are `other`. */
export const countedCommands = [
  'find',
  'getMore',
  'aggregate',
  'insert',
  'update',
  'delete',
  'findAndModify',
  'createIndexes',
  'commitTransaction',
  'abortTransaction',
  'ping',
  'other',
] as const;

const names: ReadonlySet<string> = new Set(countedCommands);

/**
 * Counts the commands that a client sends, and the documents that they write. The client must have been made with
 * `monitorCommands`. A server's monitoring, and the start and end of sessions, are not counted.
 */
export function countCommands(client: MongoClient, telemetry: Telemetry): void {
  client.on('commandStarted', ({ commandName, command }: CommandStartedEvent) => {
    if (commandName === 'endSessions') return;
    const name = names.has(commandName) ? commandName : 'other';
    telemetry.count('mongodb_commands_total', { command: name });
    const written = documentsOf(commandName, command);
    if (written > 0) telemetry.count('mongodb_documents_total', {}, written);
  });
}

/** How many documents a command inserts, updates or deletes; a statement about several of them counts once. */
function documentsOf(name: string, command: Readonly<Record<string, unknown>>): number {
  if (name === 'findAndModify') return 1;
  const statements = command['documents'] ?? command['updates'] ?? command['deletes'];
  return Array.isArray(statements) ? statements.length : 0;
}
