import type { Telemetry } from '../../observability/telemetry.ts';
import type { ConnectionSettings } from './connecting/connection-url.ts';
import { Connection } from './connecting/connection.ts';
import type { Timings } from './connecting/timings.ts';
import { Continuity } from './continuity.ts';
import { Horizon } from './horizon.ts';
import { Reading } from './reading.ts';

/** What appends, subscriptions and transfers share. */
export interface LogParts {
  readonly connection: Connection;
  readonly reading: Reading;
  readonly horizon: Horizon;
  readonly continuity: Continuity;
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
  const horizon = new Horizon();
  const reading = new Reading(connection, timings, horizon);
  const continuity = new Continuity({ reading, horizon, timings, telemetry });
  return { connection, reading, horizon, continuity, timings, telemetry };
}
