import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import express, { type Express } from 'express';
import { createHttpServer } from '../../api/serving/http-server.ts';

describe('the classes of requests and responses', () => {
  it("have the application's prototypes before Express sees them, so Express need not change any", async () => {
    const app = express();
    app.get('/', (_request, response) => {
      response.json({});
    });
    const had: unknown[] = [];
    const server = createHttpServer(app);
    server.prependListener('request', (request, response) => {
      had.push(Object.getPrototypeOf(request), Object.getPrototypeOf(response));
    });
    expect(await bodyFrom(server, '/')).to.equal('{}');
    expect(had).to.have.ordered.members([app.request, app.response]);
  });

  it('keep what an application adds to its prototypes, before and after', async () => {
    const app: Express = express();
    app.set('subject', 'a report');
    Object.defineProperty(app.request, 'ip', { configurable: true, get: () => 'from before' });
    app.get('/', (request, response) => {
      const late: unknown = (response as unknown as { readonly late: unknown }).late;
      response.send(`${request.ip} ${String(late)} ${String(request.app.get('subject'))}`);
    });
    const server = createHttpServer(app);
    Object.defineProperty(app.response, 'late', { value: 'from after' });
    expect(await bodyFrom(server, '/')).to.equal('from before from after a report');
  });

  it('allow an application within another to have its own', async () => {
    const inner = express();
    inner.set('subject', 'inner');
    inner.get('/', (request, response) => {
      response.send(String(request.app.get('subject')));
    });
    const app = express();
    app.set('subject', 'outer');
    app.use('/inner', inner);
    app.use((request, response) => {
      response.send(String(request.app.get('subject')));
    });
    expect(await bodyFrom(createHttpServer(app), '/inner')).to.equal('inner');
    expect(await bodyFrom(createHttpServer(app), '/outer')).to.equal('outer');
  });
});

async function bodyFrom(
  server: ReturnType<typeof createHttpServer>,
  path: string,
): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    return await answer.text();
  } finally {
    server.close();
    server.closeAllConnections();
  }
}
