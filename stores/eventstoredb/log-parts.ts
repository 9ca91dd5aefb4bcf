import type { Telemetry } from '../../observability/telemetry.ts';
import type { ServerCondition } from '../servers/server-condition.ts';
import type { ConnectionSettings } from './connecting/connection-url.ts';
import { eventStoreDbCondition } from './connecting/condition.ts';
import { Connection } from './connecting/connection.ts';
import type { Timings } from './connecting/timings.ts';
import { LogIdentity } from './log-identity.ts';
import { HighWaterMark } from './high-water-mark.ts';
import { LogReader } from './log-reader.ts';

/** The parts that appends, subscriptions and transfers share. */
export interface LogParts {
  readonly connection: Connection;
  /** Whether the server can be used. */
  readonly server: ServerCondition;
  readonly reader: LogReader;
  readonly highWaterMark: HighWaterMark;
  readonly identity: LogIdentity;
  readonly timings: Timings;
  readonly telemetry: Telemetry;
}

/** Makes a connection to a log, which sends nothing yet. */
export function connectLog(
  settings: ConnectionSettings,
  timings: Timings,
  telemetry: Telemetry,
): LogParts {
  const connection = new Connection(settings, timings, telemetry);
  const server = eventStoreDbCondition(settings, telemetry);
  const highWaterMark = new HighWaterMark();
  const reader = new LogReader({ connection, server, timings, highWaterMark, telemetry });
  const identity = new LogIdentity({ reader, highWaterMark, timings, telemetry });
  return { connection, server, reader, highWaterMark, identity, timings, telemetry };
}
