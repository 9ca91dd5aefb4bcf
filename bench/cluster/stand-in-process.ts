// A stand-in for one server, in its own process. It sends its connection string, and on request its load.

import { EventStoreDbServer } from '../../test/support/eventstoredb-server/server.ts';
import { MongoServer } from '../../test/support/mongodb-server/server.ts';
import type { ServerLoad } from './server-load.ts';

const send = (message: object): void => void process.send?.(message);

if (process.argv[2] === 'eventstoredb') {
  const server = await EventStoreDbServer.start();
  process.on('message', () => {
    const { appends, reads, readsOfLog, subscribed } = server;
    const endReads = readsOfLog.filter(({ backwards }) => backwards).length;
    send({
      appends: appends.length,
      streamReads: reads - readsOfLog.length,
      logReads: readsOfLog.length - endReads,
      endReads,
      subscriptions: subscribed,
    } satisfies Partial<ServerLoad>);
  });
  send({ url: server.url });
} else {
  // With transactions, as the service needs a replica set.
  const server = await MongoServer.start({ replicaSet: 'rs0' });
  let [commands, documents] = [0, 0];
  process.on('message', () => {
    for (const { command, body } of server.log) {
      const written = body['documents'] ?? body['updates'] ?? body['deletes'];
      commands += 1;
      documents += Array.isArray(written) ? written.length : Number(command === 'findAndModify');
    }
    // The record of requests would grow without limit.
    server.clearLog();
    send({ commands, documents } satisfies Partial<ServerLoad>);
  });
  send({ url: server.url() });
}
