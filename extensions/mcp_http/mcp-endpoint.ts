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
  ServiceRefusalError,
  changesNothing,
  describe,
  type Catalogue,
  type Invoker,
  type Outcome,
} from './catalogue.ts';

const INSTRUCTIONS =
  'Schedules tasks, each a pipeline of tools. Look at a schedule with preview_schedule before create_task; ' +
  'explain_task explains why something did or did not run.';

/** Maximum size of a page of a list, including its envelope. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024 - 1024;

/**
 * Handles one request of the Model Context Protocol (Streamable HTTP). It keeps no state, so any process can handle the
 * next one.
 */
export async function serveMcp(
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
  // Without a permanent connection, changes of the tools cannot be announced.
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
      // The client has disconnected.
      signal.throwIfAborted();
      const refused = refusal(error);
      if (refused !== null) return toolResult(refused);
      log.error('could not call a tool', { tool: name, error });
      throw new McpError(ErrorCode.InternalError, 'could not call the tool');
    }
  });
  const transport = new StreamableHTTPServerTransport();
  response.once('close', () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
}

/**
 * Rejects a tool whose scope the caller lacks by the HTTP status, as the protocol's authorization specification requires.
 * The client may then obtain another token.
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

/** The error for the client; null for an internal error. @throws McpError for an unknown tool */
function refusal(error: unknown): Record<string, unknown> | null {
  if (error instanceof ServiceRefusalError) {
    const { body } = error.response;
    return typeof body === 'object' && body !== null ? { ...body } : { message: error.message };
  }
  if (!(error instanceof ExtensionError)) return null;
  const { code, message, details } = error;
  if (code === 'not_found') throw new McpError(ErrorCode.InvalidParams, message);
  return { error: code, message, details };
}

/**
 * The result of a call. It contains a page of a list twice, as text and as data. If that is too large, a shorter page is
 * requested.
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
    if (bytes <= MAX_PAGE_BYTES) return told;
    less = { limit: Math.max(1, Math.floor((items.length * MAX_PAGE_BYTES) / bytes)) };
  }
}

function toolResult(content: Record<string, unknown>, isError = true): CallToolResult {
  return {
    content: [{ type: 'text', text: JSON.stringify(content) }],
    structuredContent: content,
    isError,
  };
}
