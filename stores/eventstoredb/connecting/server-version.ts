import { silent } from '../../../observability/telemetry.ts';
import { pause } from '../../waiting.ts';
import { readConnectionUrl } from './connection-url.ts';
import { Connection } from './connection.ts';
import { defaultTimings } from './timings.ts';

/** The server's version; null if it does not answer in time. @throws ConnectionUrlError for an invalid connection string */
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
      // `ping` reports an unreachable server.
      () => null,
    );
  }
}
