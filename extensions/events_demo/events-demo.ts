import type { Request, Response } from 'express';
import { Type } from '@sinclair/typebox';
import {
  ExtensionError,
  badInput,
  type EndpointDescription,
  type ExtensionCaller,
  type ExtensionContext,
  type StreamEntry,
} from '../contract.ts';

export const endpoints: readonly EndpointDescription[] = [
  {
    method: 'post',
    path: '/publish/:stream',
    operationId: 'publishDemoEvent',
    examples: {
      parameters: { stream: 'greetings' },
      body: { hello: 'world' },
      answers: {
        200: {
          success: true,
          stream: 'greetings',
          event_id: '1795420800000-0',
          message: 'published to greetings',
        },
      },
    },
    summary: 'Appends a body of any shape to a stream of the demonstration',
    scopes: ['events:publish'],
    body: Type.Unknown(),
    idempotent: true,
    answers: {
      200: Type.Object(
        {
          success: Type.Literal(true),
          stream: Type.String(),
          event_id: Type.String({ pattern: '^[0-9]+-[0-9]+$' }),
          message: Type.String(),
        },
        { additionalProperties: false },
      ),
    },
    refusals: ['payload_too_large'],
  },
  {
    method: 'get',
    path: '/subscribe/:stream',
    operationId: 'watchDemoStream',
    examples: {
      parameters: { stream: 'greetings', from: 'start' },
      answers: {
        200: 'id: 1795420800000-0\ndata: {"stream":"greetings","id":"1795420800000-0","data":{"hello":"world"}}\n\n',
      },
    },
    summary: 'Tells of what is published to a stream of the demonstration',
    scopes: ['events:read'],
    query: Type.Object({
      from: Type.Optional(Type.Literal('start', { description: 'begins with the first' })),
    }),
    answers: { 200: Type.String({ contentMediaType: 'text/event-stream' }) },
  },
];

/** What a subscriber may leave unread before it is let go; it goes on by `Last-Event-ID`. Bytes. */
const MOST_UNREAD = 1024 * 1024;

/** How often something is written on a connection on which nothing happens. Milliseconds. */
const BEAT = 15_000;

/**
 * Demonstrates events: `POST publish/{stream}` appends a body of any shape, `GET subscribe/{stream}` tells of what
 * comes as server-sent events.
 */
export function setup(context: ExtensionContext): void {
  const { routes } = context;

  routes.post('/publish/:stream', async (request, response) => {
    const caller = admitted(context.callerOf(request), 'events:publish');
    if (request.body === undefined) throw badInput('body', 'is required');
    const { stream } = request.params;
    const published = await context.once(request, async () => {
      const { id } = await context.streams.append(stream, request.body, caller.agentId, {
        onBehalfOf: request,
      });
      return { success: true, stream, event_id: id, message: `published to ${stream}` };
    });
    response.json(published);
  });

  routes.get('/subscribe/:stream', async (request, response) => {
    admitted(context.callerOf(request), 'events:read');
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const after = whereFrom(request);
    const follow = { signal: gone.signal, ...(after === undefined ? {} : { after }) };
    const entries = await context.streams
      .follow(request.params.stream, follow)
      .catch((error: unknown) => {
        throw asAsked(error);
      });
    begin(response);
    if (request.method === 'HEAD') response.end();
    else await tell(entries, response, () => mayRead(context.callerOf(request)));
  });
}

/** @throws ExtensionError `unauthorized`, `forbidden` */
function admitted(caller: ExtensionCaller | null, scope: string): ExtensionCaller {
  if (caller === null) throw new ExtensionError('unauthorized', 'a bearer token is needed');
  if (has(caller, scope)) return caller;
  throw new ExtensionError('forbidden', `this needs the scope ${scope}`, {
    required_scopes: [scope],
    granted_scopes: caller.scopes,
  });
}

const has = ({ admin, scopes }: ExtensionCaller, scope: string): boolean =>
  admin || scopes.includes(scope);

const mayRead = (caller: ExtensionCaller | null): boolean =>
  caller !== null && has(caller, 'events:read');

/** `Last-Event-ID` goes before `?from=start`: a client that comes back has the same address as before. */
function whereFrom(request: Request): string | undefined {
  const last = request.get('last-event-id');
  if (last !== undefined && last !== '') return last;
  const { from } = request.query;
  if (from === undefined) return undefined;
  if (from === 'start') return 'start';
  throw badInput('from', 'must be start, or be left out');
}

/** Of a place in the stream that is none, by the name that its client knows it by. */
function asAsked(error: unknown): unknown {
  if (!(error instanceof ExtensionError)) return error;
  const { field, issue } = error.details;
  return field === 'after' ? badInput('Last-Event-ID', String(issue)) : error;
}

/** The headers go out at once: whoever has them misses nothing that is published from then on. */
function begin(response: Response): void {
  response.locals['notMeasured'] = true;
  response.status(200);
  response.setHeader('Content-Type', 'text/event-stream; charset=utf-8');
  // Else a proxy might wait for more before it passes anything on.
  response.setHeader('X-Accel-Buffering', 'no');
  response.flushHeaders();
}

/** @param mayGoOn a scope can be taken away while a stream is read */
async function tell(
  entries: AsyncIterable<StreamEntry>,
  response: Response,
  mayGoOn: () => boolean,
): Promise<void> {
  const beat = setInterval(() => {
    if (!mayGoOn()) response.end();
    else if (response.writableLength === 0) response.write(': heartbeat\n\n');
  }, BEAT);
  beat.unref();
  try {
    for await (const { id, stream, data } of entries) {
      if (!mayGoOn() || response.writableLength > MOST_UNREAD) break;
      response.write(`id: ${id}\ndata: ${JSON.stringify({ stream, id, data })}\n\n`);
    }
  } finally {
    clearInterval(beat);
    response.end();
  }
}
