import { createHttpTool } from '../../../scheduler/tools/http-request.ts';
import type { LookUpAll } from '../../../scheduler/http/address-rules.ts';
import type { HttpClientOptions } from '../../../scheduler/http/http-client.ts';
import { ToolError, type ToolCall } from '../../../scheduler/tools/tool.ts';
import { WebhookSender } from '../../../scheduler/webhooks/webhook-sender.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { RawServer, type RawResponse } from '../../support/raw-server.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { secretOfTest } from '../webhooks/webhook-harness.ts';

/** The result of a call. */
export interface Outcome {
  /** null: no response, or a rejected one. */
  readonly status: number | null;
  /** The whole result of `http.request`. */
  readonly result: Readonly<Record<string, unknown>>;
  /** A body as a string. */
  readonly text: string;
  readonly error: string | null;
  readonly retryAfterMs: number | undefined;
}

export type CallOptions = Partial<HttpClientOptions>;

/** A busy machine must not close a kept connection between two calls. */
const PATIENT = { allowPrivate: true, idleMs: 60_000 } as const;

/** A caller of HTTP: a step with `http.request`, or a webhook. Its client is reused. */
export interface Caller {
  call(url: string, args?: object): Promise<Outcome>;
}

export const callers = {
  'http.request': (options: CallOptions, closing: Closing): Caller => {
    const { tool, close } = createHttpTool({ ...PATIENT, ...options });
    closing.push(close);
    return {
      call: async (url, args) => {
        try {
          const result = (await tool.run({ url, ...args }, toolCall())) as Record<string, unknown>;
          const { body, status } = result;
          const text = typeof body === 'string' ? body : '';
          return { status: status as number, result, text, error: null, retryAfterMs: undefined };
        } catch (error) {
          if (!(error instanceof ToolError)) throw error;
          const { message, retryAfterMs } = error;
          return { status: null, result: {}, text: message, error: message, retryAfterMs };
        }
      },
    };
  },
  'a webhook': (options: CallOptions, closing: Closing): Caller => {
    const settings = { ...PATIENT, ...options };
    const sender = new WebhookSender({ clock: new VirtualClock(NOW), userAgent: 't', ...settings });
    closing.push(() => sender.close());
    return {
      call: async (url) => {
        const post = { id: 'd', url, body: '{}', secrets: [secretOfTest('a', 1)] };
        const reply = await sender.send(post, new AbortController().signal);
        const { status, answer, error, retryAfter: retryAfterMs } = reply;
        return { status, result: {}, text: answer ?? '', error, retryAfterMs };
      },
    };
  },
} as const;

/** Both callers, for tests of shared behaviour. */
export const bothCallers = Object.keys(callers) as (keyof typeof callers)[];

type Closing = (() => Promise<unknown>)[];

/** The time of each call. */
export const NOW = '1994-11-06T08:49:00Z';

/** Servers and clients for these tests. They are closed after each test. */
export interface CallersHarness {
  /** A raw server with this response, and its address. */
  server(answer: RawResponse): Promise<{ readonly server: RawServer; readonly origin: string }>;
  caller(name: keyof typeof callers, options?: CallOptions): Caller;
  readonly closing: Closing;
}

/** Call it inside a `describe`. */
export function callersHarness(): CallersHarness {
  const closing: Closing = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  leavesNothingOpen();
  return {
    closing,
    server: async (answer) => {
      const server = new RawServer(answer);
      const origin = await server.listen();
      closing.push(() => server.close());
      return { server, origin };
    },
    caller: (name, options = {}) => callers[name](options, closing),
  };
}

/** A lookup that resolves these names only. */
export function namesAre(names: Readonly<Record<string, string>>): LookUpAll {
  return (hostname, _options, callback) => {
    const address = names[hostname];
    if (address !== undefined) {
      return callback(null, [{ address, family: address.includes(':') ? 6 : 4 }]);
    }
    const error = new Error(`getaddrinfo ENOTFOUND ${hostname}`);
    return callback(Object.assign(error, { code: 'ENOTFOUND', syscall: 'getaddrinfo' }), []);
  };
}

function toolCall(): ToolCall {
  return {
    signal: new AbortController().signal,
    idempotencyKey: 'run-1:step_0',
    clock: new VirtualClock(NOW),
    runId: 'run-1',
    taskId: 'task-1',
    step: 'step_0',
    actAs: 'agent-1',
    namespace: 'default',
    mask: (text) => text,
    log: () => {},
  };
}
