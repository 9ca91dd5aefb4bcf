import {
  createServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type Server,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExecutionResult } from '../../../scheduler/pipeline/execution.ts';
import { createHttpTool } from '../../../scheduler/tools/http-request.ts';
import type { AddressCheck, LookUpAll } from '../../../scheduler/http/address-rules.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { execute } from '../pipeline/pipeline-execution-harness.ts';

/** A request as the server saw it. */
export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type Answer = (seen: Seen, response: Parameters<RequestListener>[1]) => void;

/** The tool's result. */
export interface Answered {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: unknown;
}

/** A real server that records its requests. */
export async function serve(
  answer: Answer,
): Promise<{ origin: string; seen: Seen[]; server: Server }> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const one = { method, url, headers, body: Buffer.concat(chunks).toString() };
      seen.push(one);
      answer(one, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, seen, server };
}

export interface RequestOptions {
  readonly allowPrivate?: boolean;
  readonly lookUpAll?: LookUpAll;
  readonly isPrivate?: AddressCheck;
  readonly clock?: VirtualClock;
  readonly signal?: AbortSignal;
  readonly secrets?: Readonly<Record<string, string>>;
  /** More fields of the step. */
  readonly step?: object;
}

/** Servers and requests for tests of the tool. Everything is closed after each test. */
export interface HttpHarness {
  server(answer: Answer): Promise<{ origin: string; seen: Seen[]; server: Server }>;
  /** Runs one step with the tool. Returns its result, or the run's failure. */
  request(
    args: object,
    options?: RequestOptions,
  ): Promise<{
    readonly result: ExecutionResult;
    readonly failure: Extract<ExecutionResult, { kind: 'failed' }> | null;
    readonly answered: Answered;
  }>;
}

/** Call it inside a `describe`. */
export function httpHarness(): HttpHarness {
  const closing: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  leavesNothingOpen();

  async function server(answer: Answer): Promise<Awaited<ReturnType<typeof serve>>> {
    const served = await serve(answer);
    closing.push(
      () =>
        new Promise((resolve) => {
          served.server.close(resolve);
          served.server.closeAllConnections();
        }),
    );
    return served;
  }

  const request: HttpHarness['request'] = async (args, options = {}) => {
    const {
      allowPrivate = true,
      lookUpAll,
      isPrivate,
      clock = new VirtualClock(),
      signal,
      secrets = { KEY: 's3cret' },
      step,
    } = options;
    const { tool, close } = createHttpTool({
      allowPrivate,
      ...(lookUpAll ? { lookUpAll } : {}),
      ...(isPrivate ? { isPrivate } : {}),
    });
    closing.push(close);
    const { result, output } = await execute({
      pipeline: [{ uses: 'http.request', with: args, ...step }],
      tools: { 'http.request': tool },
      secrets,
      clock,
      ...(signal ? { signal } : {}),
    });
    const failure = result.kind === 'failed' ? result : null;
    const answered = Object.values(output['steps'] as object)[0] as Answered;
    return { result, failure, answered };
  };

  return { server, request };
}
