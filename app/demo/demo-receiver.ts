import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request to the receiver. */
export interface Received {
  readonly method: string;
  readonly path: string;
  /** The header `Idempotency-Key`; empty without one. */
  readonly idempotencyKey: string;
  readonly body: string;
  /** The response's status. */
  readonly status: number;
}

/** A local HTTP server that a task of the demo calls. */
export interface DemoReceiver {
  readonly address: string;
  readonly received: readonly Received[];
  close(): Promise<void>;
}

/** Starts the receiver on a free port. It rejects the first request (503) to show a retry. */
export async function startReceiver(): Promise<DemoReceiver> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    void bodyOf(request).then(
      (body) => {
        const status = received.length === 0 ? 503 : 200;
        received.push({
          method: request.method ?? '',
          path: request.url ?? '',
          idempotencyKey: String(request.headers['idempotency-key'] ?? ''),
          body,
          status,
        });
        const answer = status === 503 ? { error: 'busy' } : { accepted: true };
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify(answer));
      },
      () => {},
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    address: `http://127.0.0.1:${port}`,
    received,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
