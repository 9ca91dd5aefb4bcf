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
    summary: 'Appends any JSON to a demonstration stream',
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
    summary: 'Follows a demonstration stream',
    scopes: ['events:read'],
    query: Type.Object({
      from: Type.Optional(Type.Literal('start', { description: 'from the first entry' })),
    }),
    answers: { 200: Type.String({ contentMediaType: 'text/event-stream' }) },
  },
];

/** Maximum unread bytes of a subscriber before it is disconnected. It can continue with `Last-Event-ID`. */
const MAX_UNREAD_BYTES = 1024 * 1024;

/** Interval of comments on an idle connection. Milliseconds. */
const BEAT = 15_000;

/**
 * Demonstrates events: `POST publish/{stream}` appends any JSON, and `GET subscribe/{stream}` follows the stream as
 * server-sent events.
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
    const { agentId: actAs } = admitted(context.callerOf(request), 'events:read');
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const after = whereFrom(request);
    const follow = { actAs, signal: gone.signal, ...(after === undefined ? {} : { after }) };
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

/** `Last-Event-ID` overrides `?from=start`, because a reconnecting client repeats the URL. */
function whereFrom(request: Request): string | undefined {
  const last = request.get('last-event-id');
  if (last !== undefined && last !== '') return last;
  const { from } = request.query;
  if (from === undefined) return undefined;
  if (from === 'start') return 'start';
  throw badInput('from', 'must be start, or left out');
}

/** Names an invalid position by the header that the client sent. */
function asAsked(error: unknown): unknown {
  if (!(error instanceof ExtensionError)) return error;
  const { field, issue } = error.details;
  return field === 'after' ? badInput('Last-Event-ID', String(issue)) : error;
}

/** Sends the headers at once. A client that has them misses no later entry. */
function begin(response: Response): void {
  response.locals['notMeasured'] = true;
  response.status(200);
  response.setHeader('Content-Type', 'text/event-stream; charset=utf-8');
  // Otherwise, a proxy might buffer the stream.
  response.setHeader('X-Accel-Buffering', 'no');
  response.flushHeaders();
}

/** @param mayGoOn false once the caller has lost its scope */
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
      if (!mayGoOn() || response.writableLength > MAX_UNREAD_BYTES) break;
      response.write(`id: ${id}\ndata: ${JSON.stringify({ stream, id, data })}\n\n`);
    }
  } finally {
    clearInterval(beat);
    response.end();
  }
}
