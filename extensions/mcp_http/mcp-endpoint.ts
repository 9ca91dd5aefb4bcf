import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  type CallToolResult,
} from '@modelcontextprotocol/sdk/types.js';
import type { Request, Response } from 'express';
import { ExtensionError, type ExtensionContext } from '../contract.ts';
import {
  ServiceRefusal,
  changesNothing,
  describe,
  type Catalogue,
  type Invoker,
  type Outcome,
} from './catalogue.ts';

const INSTRUCTIONS =
  'Schedules tasks, each a pipeline of tools. Look at a schedule with preview_schedule before create_task; ' +
  'explain_task tells why something did or did not run.';

/** Most bytes of a page of a list, with all that is around it. */
const MOST_BYTES = 4 * 1024 * 1024 - 1024;

/**
 * Answers one request of the Model Context Protocol (Streamable HTTP). Nothing is kept between requests, so that any
 * process of the service can take the next one.
 */
export async function answerMcp(
  request: Request,
  response: Response,
  parts: {
    readonly catalogue: Catalogue;
    readonly context: Pick<ExtensionContext, 'info' | 'log'>;
  } & Pick<Invoker, 'caller'>,
): Promise<void> {
  const { catalogue, context, caller } = parts;
  const { info, log } = context;
  await checkScopes(request.body, catalogue, { caller, request });
  const { server } = new McpServer(
    { name: info.id, title: info.name, version: info.version },
    { instructions: INSTRUCTIONS },
  );
  // Without a connection that stays, nobody could be told that the tools have changed.
  server.registerCapabilities({ tools: { listChanged: false } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: catalogue.list(caller).map((entry) => {
      const { name, description, parameters } = describe(entry);
      const annotations = { readOnlyHint: changesNothing(entry) };
      return { name, description, inputSchema: parameters, annotations };
    }),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    const { name, arguments: given = {} } = params;
    try {
      const invoker = { caller, request, signal };
      return await resultOf((less) => catalogue.invoke(name, { ...given, ...less }, invoker));
    } catch (error) {
      // The client has gone, and was not waited for any longer.
      signal.throwIfAborted();
      const refused = refusal(error);
      if (refused !== null) return toolResult(refused);
      log.error('a tool could not be called', { tool: name, error });
      throw new McpError(ErrorCode.InternalError, 'the tool could not be called');
    }
  });
  const transport = new StreamableHTTPServerTransport();
  response.once('close', () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
}

/**
 * A tool whose scope the caller lacks is refused by the status of the response, as the protocol's specification of
 * authorization wants it: a client may then obtain a token that reaches.
 * @throws ExtensionError `forbidden`
 */
async function checkScopes(
  body: unknown,
  catalogue: Catalogue,
  who: Pick<Invoker, 'caller' | 'request'>,
): Promise<void> {
  for (const message of [body].flat()) {
    const call = CallToolRequestSchema.safeParse(message);
    if (!call.success) continue;
    try {
      await catalogue.allowed(call.data.params.name, who);
    } catch (error) {
      if (error instanceof ExtensionError && error.code === 'forbidden') throw error;
    }
  }
}

/** What a client is told; null where it is a fault. @throws McpError for a tool that is not there */
function refusal(error: unknown): Record<string, unknown> | null {
  if (error instanceof ServiceRefusal) {
    const { body } = error.answer;
    return typeof body === 'object' && body !== null ? { ...body } : { message: error.message };
  }
  if (!(error instanceof ExtensionError)) return null;
  const { code, message, details } = error;
  if (code === 'not_found') throw new McpError(ErrorCode.InvalidParams, message);
  return { error: code, message, details };
}

/**
 * The result of a call. A page of a list stands in it twice, as text and as data: where both are too much for one
 * response, a shorter page is asked for.
 */
async function resultOf(
  invoke: (less: { readonly limit?: number }) => Promise<Outcome>,
): Promise<CallToolResult> {
  for (let less = {}; ;) {
    const { success, result } = await invoke(less);
    const told = toolResult({ ...result }, !success);
    const items = result['items'];
    if (!Array.isArray(items) || items.length < 2) return told;
    const bytes = Buffer.byteLength(JSON.stringify(told));
    if (bytes <= MOST_BYTES) return told;
    less = { limit: Math.max(1, Math.floor((items.length * MOST_BYTES) / bytes)) };
  }
}

function toolResult(content: Record<string, unknown>, isError = true): CallToolResult {
  return {
    content: [{ type: 'text', text: JSON.stringify(content) }],
    structuredContent: content,
    isError,
  };
}
