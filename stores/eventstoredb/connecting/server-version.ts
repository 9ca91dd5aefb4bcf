import { silent } from '../../../observability/telemetry.ts';
import { readConnectionUrl } from './connection-url.ts';
import { Connection } from './connection.ts';
import { pause } from './pause.ts';
import { defaultTimings } from './timings.ts';

/**
 * What version a server says it has; null where it does not say, or not in time.
 * @throws ConnectionUrlError when the connection string can't be meant so
 */
export async function eventStoreDbVersion(url: string): Promise<string | null> {
  const connection = new AskedConnection(readConnectionUrl(url), defaultTimings, silent);
  try {
    return await Promise.race([
      connection.serverVersion(),
      pause(defaultTimings.pingMs).then(() => null),
    ]);
  } finally {
    await connection.close();
  }
}

class AskedConnection extends Connection {
  serverVersion(): Promise<string | null> {
    return this.capabilities.then(
      ({ serverVersion }) => serverVersion || null,
      // One that is away is told of by whoever pings it.
      () => null,
    );
  }
}
