import { readFileSync } from 'node:fs';
import { EventStoreError } from '../../../domain/event-store.ts';
import type { UnusableServerError } from '../../../domain/server-problem.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import type { Address } from '../../servers/reachability.ts';
import { ServerCondition } from '../../servers/server-condition.ts';
import { ServerWords } from '../../servers/server-words.ts';
import {
  classifyError,
  isConnectionFailure,
  rejectionOf,
  toEventStoreError,
} from './client-errors.ts';
import type { ConnectionSettings } from './connection-url.ts';

/** The operation for which a user needs a right, as named in messages. */
export type Operation = 'read the whole log' | 'read streams' | 'append events';

/** HTTP/2's connection preface with empty settings. A server responds with its own settings. */
const greeting = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
]);

/** Whether the server or cluster can be used. @throws Error if the file of authorities cannot be read */
export function eventStoreDbCondition(
  settings: ConnectionSettings,
  telemetry: Telemetry,
): ServerCondition {
  const { hosts, secure, credentials, files } = settings;
  const words = new ServerWords({
    product: 'EventStoreDB',
    hosts: hosts.map(({ address, port }) => `${address}:${port}`).join(','),
    user: secure ? credentials?.username : undefined,
    setting: 'SVC_EVENT_STORE_URL',
    forbidden: (operation) => operation,
    grant: 'use a member of $admins',
    tlsNeedsUser: true,
    leaderless: 'no_leader',
  });
  const ca = files.tlsCAFile === undefined ? undefined : readFileSync(files.tlsCAFile);
  const addresses = hosts.map(({ address, port }): Address => {
    return { host: address, port, tls: secure ? { ca } : null, greeting };
  });
  return new ServerCondition(words, telemetry, () => addresses);
}

/**
 * @param operation default: an operation whose rights differ between streams, so it is always tried if the user is
 *   accepted
 * @throws EventStoreError `UNAVAILABLE` if the server would reject the operation and should not be tried now
 */
export function requireUsable(server: ServerCondition, operation?: Operation): void {
  const problem = server.blocking(operation);
  if (problem !== null) throw unusableError(problem);
}

/**
 * The port's error for a failed call that wrote nothing. Reports why the server cannot be used, if that is the reason.
 * @param of.doing for the message: "read stream task-1"
 * @param of.limitMs how long to wait for the reason
 */
export async function failureOf(
  server: ServerCondition,
  error: unknown,
  of: {
    readonly operation: Operation;
    readonly doing: string;
    readonly limitMs: number;
    readonly stream?: string | undefined;
  },
): Promise<EventStoreError> {
  if (error instanceof EventStoreError) return error;
  const problem = await problemOf(server, error, of);
  return problem === null
    ? toEventStoreError(error, of.doing, of.stream)
    : unusableError(problem, of.stream);
}

async function problemOf(
  server: ServerCondition,
  error: unknown,
  { operation, limitMs }: { readonly operation: Operation; readonly limitMs: number },
): Promise<UnusableServerError | null> {
  const failure = classifyError(error);
  // A deleted stream, for example, has the same status as a missing right.
  const rejection = failure === 'refused' ? rejectionOf(error) : null;
  if (rejection === 'user') return server.rejected(error);
  if (rejection === 'right') return server.forbidden(operation, error);
  const isLost = failure === 'unclear' || failure === 'elsewhere';
  return isLost && isConnectionFailure(error) ? server.unreachable(error, limitMs) : null;
}

/** The port's error while a server cannot be used. Nothing was written. */
export function unusableError(problem: UnusableServerError, stream?: string): EventStoreError {
  const details = { cause: problem, ...(stream === undefined ? {} : { stream }) };
  return new EventStoreError('UNAVAILABLE', problem.message, details);
}
