import { randomUUID } from 'node:crypto';
import type { Request, Response } from 'express';
import { ExtensionError, type ExtensionCaller, type ExtensionContext } from '../contract.ts';
import { announce, begin } from './announcements.ts';
import { BodyReading } from './body-reading.ts';
import {
  Catalogue,
  ServiceRefusalError,
  changesNothing,
  describe,
  type Invoker,
} from './catalogue.ts';
import { offers } from './endpoints.ts';

export { endpoints } from './endpoints.ts';

/** Default of `SVC_EXT_MCP_HTTP_HEARTBEAT_SECONDS`. */
const BEAT = '15';

/**
 * The service's tools for language models, over plain HTTP and, at `mcp`, over the Model Context Protocol. The caller's
 * scopes decide what is listed and allowed.
 * @throws Error for an invalid heartbeat interval
 */
export function setup(context: ExtensionContext): void {
  const { routes, info } = context;
  const catalogue = new Catalogue(context);
  const every = heartbeatOf(context);
  const about = { server: info.id, version: info.version, capabilities: offers };
  const described = (caller: ExtensionCaller) => catalogue.list(caller).map(describe);

  routes.get('/meta', (_request, response) => {
    response.json(about);
  });

  routes.post('/handshake', (request, response) => {
    const { agentId } = callerOf(context, request);
    const reading = new BodyReading();
    const body = reading.object(request.body, 'body', ['client']);
    const client = body && reading.object(body['client'], 'client', ['name', 'version']);
    const name = reading.text(client, 'name', 'client.name');
    const version = reading.text(client, 'version', 'client.version');
    reading.end();
    const session_id = randomUUID();
    context.log.info('client introduced itself', {
      client: name,
      version,
      agent: agentId,
      session_id,
    });
    response.json({ server: { name: info.id, version: info.version }, session_id });
  });

  routes.get('/tools', (request, response) => {
    response.json({ tools: described(callerOf(context, request)) });
  });

  routes.get('/schema', (request, response) => {
    const schemas = described(callerOf(context, request)).map(
      ({ name, parameters }) => [name, parameters] as const,
    );
    response.json({ ...about, tools: Object.fromEntries(schemas) });
  });

  routes.get('/tools/:name/schema', (request, response) => {
    const entry = catalogue.get(request.params.name, callerOf(context, request));
    response.json(describe(entry).parameters);
  });

  routes.post('/invoke', async (request, response) => {
    const reading = new BodyReading();
    const body = reading.object(request.body, 'body', ['tool', 'parameters']);
    const tool = reading.text(body, 'tool', 'tool');
    const parameters = reading.object(body?.['parameters'] ?? {}, 'parameters') ?? {};
    reading.end();
    const invoker = invokerOf(context, request, response);
    const call = () => catalogue.invoke(tool, parameters, invoker);
    const entry = await catalogue.allowed(tool, invoker);
    // Only commands use up an idempotency key.
    catalogue.check(entry, parameters);
    const isRead = changesNothing(entry);
    try {
      response.json(await (isRead ? call() : context.once(request, call)));
    } catch (error) {
      if (!(error instanceof ServiceRefusalError)) throw error;
      sendRefusal(response, error);
    }
  });

  routes.get('/sse', async (request, response) => {
    const { signal: gone } = invokerOf(context, request, response);
    begin(response);
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    // The host keeps checking the caller, and ends the response when the caller is no longer valid.
    const look = () => {
      const tools = described(callerOf(context, request)).map(({ name }) => name);
      return { ...about, tools };
    };
    try {
      await announce(response, { every, gone, look });
    } catch (error) {
      // The response has started. It can only be ended and logged.
      context.log.error('could not continue announcing tools', { error });
    }
  });

  routes.post('/mcp', async (request, response) => {
    const caller = callerOf(context, request);
    // The SDK takes 30 MB, so it is loaded on first use.
    const { serveMcp: answerMcp } = await import('./mcp-endpoint.ts');
    await answerMcp(request, response, { catalogue, context, caller });
  });

  // A stateless server has no stream and no sessions. The protocol requires 405.
  routes.all('/mcp', (_request, response) => {
    const error = { code: -32_000, message: 'Method not allowed.' };
    response.status(405).set('Allow', 'POST').json({ jsonrpc: '2.0', error, id: null });
  });
}

function heartbeatOf({ config }: ExtensionContext): number {
  const said = config['heartbeat_seconds'] ?? BEAT;
  const seconds = Number(said);
  if (seconds >= 0.01 && seconds <= 3600) return seconds * 1000;
  throw new Error('SVC_EXT_MCP_HTTP_HEARTBEAT_SECONDS must be 0.01 to 3600');
}

function callerOf(context: ExtensionContext, request: Request): ExtensionCaller {
  const caller = context.callerOf(request);
  if (caller === null) throw new ExtensionError('unauthorized', 'a bearer token is needed');
  return caller;
}

function invokerOf(context: ExtensionContext, request: Request, response: Response): Invoker {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  return { caller: callerOf(context, request), request, signal: gone.signal };
}

/** The service's own error body, with the id of the rejected request. */
function sendRefusal(response: Response, { response: refusal }: ServiceRefusalError): void {
  const again = refusal.headers['retry-after'];
  if (again !== undefined) response.set('Retry-After', again);
  response.status(refusal.status).json(refusal.body);
}
