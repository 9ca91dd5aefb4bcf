import { Type, type TProperties } from '@sinclair/typebox';
import type { EndpointDescription } from '../contract.ts';

/** Capabilities that `GET meta` names. */
export const offers = ['handshake', 'list_tools', 'invoke', 'schema', 'sse'] as const;

/** The schema in the examples. */
const schema = {
  type: 'object',
  properties: { task_id: { type: 'string', description: 'id of the task, a UUID' } },
  required: ['task_id'],
};
const info = { server: 'mcp_http', version: '1.0.0', capabilities: [...offers] };
const task_id = '01a1fc11-0505-734a-8920-9c4c55a40f65';

const parseError = {
  jsonrpc: '2.0',
  error: { code: -32_000, message: 'the message cannot be parsed' },
  id: null,
};

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

/** A JSON-RPC 2.0 message of the Model Context Protocol. */
const message = Type.Object(
  { jsonrpc: Type.Literal('2.0') },
  { description: 'a JSON-RPC 2.0 message: a request, a notification, a result or an error' },
);
const eventStream = Type.String({ contentMediaType: 'text/event-stream' });
const notAllowed = {
  scopes: [],
  answers: { 405: message },
};

/** The tool protocol over plain HTTP, and the Model Context Protocol at `mcp`. */
export const endpoints: readonly EndpointDescription[] = [
  {
    method: 'get',
    path: '/meta',
    operationId: 'getToolProtocol',
    examples: { answers: { 200: info } },
    summary: 'Capabilities of the tool protocol',
    scopes: null,
    answers: { 200: closed(about) },
  },
  {
    method: 'post',
    path: '/handshake',
    operationId: 'shakeHands',
    examples: {
      body: { client: { name: 'example', version: '1.0.0' } },
      answers: { 200: { server: { name: 'mcp_http', version: '1.0.0' }, session_id: task_id } },
    },
    summary: 'Introduces a client',
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
    operationId: 'listTools',
    examples: {
      answers: {
        200: { tools: [{ name: 'pause_task', description: 'Pauses a task.', parameters: schema }] },
      },
    },
    summary: 'Lists the tools that the caller may call',
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
    operationId: 'listToolSchemas',
    examples: { answers: { 200: { ...info, tools: { pause_task: schema } } } },
    summary: 'The parameters of all tools',
    scopes: [],
    answers: { 200: closed({ ...about, tools: Type.Record(Type.String(), parameters) }) },
  },
  {
    method: 'get',
    path: '/tools/:name/schema',
    operationId: 'getToolSchema',
    examples: { parameters: { name: 'pause_task' }, answers: { 200: schema } },
    summary: 'The parameters of one tool',
    scopes: [],
    answers: { 200: parameters },
  },
  {
    method: 'post',
    path: '/invoke',
    operationId: 'invokeTool',
    examples: {
      body: { tool: 'pause_task', parameters: { task_id } },
      answers: {
        200: {
          success: true,
          result: {
            task_id,
            old_status: 'active',
            new_status: 'paused',
            message: 'the task is paused',
          },
        },
      },
    },
    summary: 'Calls a tool',
    scopes: [],
    body: closed({ tool: text, parameters: Type.Optional(Type.Object({})) }),
    idempotent: true,
    answers: {
      200: closed({
        success: Type.Boolean({ description: 'false: the tool was called and failed' }),
        result: Type.Object({}),
      }),
    },
    // A rejection by the service is returned as it is.
    refusals: ['conflict', 'precondition_failed', 'payload_too_large'],
  },
  {
    method: 'get',
    path: '/sse',
    operationId: 'watchTools',
    examples: {
      answers: {
        200: `event: announce\ndata: ${JSON.stringify({ ...info, tools: ['pause_task'] })}\n\n`,
      },
    },
    summary: 'Announces the tools, now and after each change',
    scopes: [],
    answers: { 200: eventStream },
  },
  {
    method: 'post',
    path: '/mcp',
    operationId: 'sendMcpMessage',
    examples: {
      body: { jsonrpc: '2.0', id: 1, method: 'ping' },
      answers: {
        200: 'event: message\ndata: {"result":{},"jsonrpc":"2.0","id":1}\n\n',
        400: parseError,
        406: parseError,
      },
    },
    summary: 'A message of the Model Context Protocol (Streamable HTTP, without sessions)',
    scopes: [],
    body: message,
    answers: {
      200: eventStream,
      202: Type.String({ contentMediaType: 'none', description: 'a notification was accepted' }),
      400: Type.Object({}, { description: 'the error body of all endpoints, or a message' }),
      406: message,
    },
  },
  {
    method: 'get',
    path: '/mcp',
    summary: 'Returns 405, as the protocol requires of a server that sends nothing on its own',
    ...notAllowed,
  },
  {
    method: 'delete',
    path: '/mcp',
    summary: 'Returns 405: there are no sessions to end',
    ...notAllowed,
  },
];
