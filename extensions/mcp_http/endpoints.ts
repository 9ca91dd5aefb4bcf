import { Type, type TProperties } from '@sinclair/typebox';
import type { EndpointDescription } from '../contract.ts';

/** What `GET meta` names. */
export const offers = ['handshake', 'list_tools', 'invoke', 'schema', 'sse'] as const;

const closed = (properties: TProperties) =>
  Type.Object(properties, { additionalProperties: false });
const text = Type.String({ minLength: 1, maxLength: 200 });

/** JSON schema of a tool's parameters. */
const parameters = Type.Object(
  {
    type: Type.Literal('object'),
    properties: Type.Record(Type.String(), Type.Unknown()),
  },
  { description: 'JSON schema' },
);

const about = {
  server: Type.String(),
  version: Type.String(),
  capabilities: Type.Array(Type.Union(offers.map((each) => Type.Literal(each)))),
};

/** A message of JSON-RPC 2.0, as the Model Context Protocol has them. */
const message = Type.Object(
  { jsonrpc: Type.Literal('2.0') },
  { description: 'a message of JSON-RPC 2.0: a request, a notification, a result or an error' },
);
const eventStream = Type.String({ contentMediaType: 'text/event-stream' });
const notAllowed = {
  scopes: [],
  answers: { 405: message },
};

/** The tool protocol over plain HTTP, and the Model Context Protocol at `mcp`, whose messages are its own. */
export const endpoints: readonly EndpointDescription[] = [
  {
    method: 'get',
    path: '/meta',
    summary: 'What the tool protocol here can do',
    scopes: null,
    answers: { 200: closed(about) },
  },
  {
    method: 'post',
    path: '/handshake',
    summary: 'A client says who it is',
    scopes: [],
    body: closed({ client: closed({ name: text, version: text }) }),
    answers: {
      200: closed({
        server: closed({ name: Type.String(), version: Type.String() }),
        session_id: Type.String({ format: 'uuid' }),
      }),
    },
  },
  {
    method: 'get',
    path: '/tools',
    summary: 'The tools that the caller may call',
    scopes: [],
    answers: {
      200: closed({
        tools: Type.Array(closed({ name: Type.String(), description: Type.String(), parameters })),
      }),
    },
  },
  {
    method: 'get',
    path: '/schema',
    summary: 'The parameters of all of them',
    scopes: [],
    answers: { 200: closed({ ...about, tools: Type.Record(Type.String(), parameters) }) },
  },
  {
    method: 'get',
    path: '/tools/:name/schema',
    summary: 'The parameters of one tool',
    scopes: [],
    answers: { 200: parameters },
  },
  {
    method: 'post',
    path: '/invoke',
    summary: 'Calls a tool',
    scopes: [],
    body: closed({ tool: text, parameters: Type.Optional(Type.Object({})) }),
    idempotent: true,
    answers: {
      200: closed({
        success: Type.Boolean({ description: 'false: the tool was called, and failed' }),
        result: Type.Object({}),
      }),
    },
    // What the service refuses of a tool's request is answered as it says it.
    refusals: ['conflict', 'precondition_failed', 'payload_too_large'],
  },
  {
    method: 'get',
    path: '/sse',
    summary: 'Announces the tools, and again when they change',
    scopes: [],
    answers: { 200: eventStream },
  },
  {
    method: 'post',
    path: '/mcp',
    summary: 'A message of the Model Context Protocol (Streamable HTTP, without sessions)',
    scopes: [],
    body: message,
    answers: {
      200: eventStream,
      202: Type.String({ contentMediaType: 'none', description: 'a notification was taken' }),
      400: Type.Object({}, { description: 'the error body of all endpoints, or a message' }),
      406: message,
    },
  },
  {
    method: 'get',
    path: '/mcp',
    summary: 'Answered with 405, as the protocol wants it of a server that tells nothing by itself',
    ...notAllowed,
  },
  {
    method: 'delete',
    path: '/mcp',
    summary: 'Answered with 405: there are no sessions to end',
    ...notAllowed,
  },
];
