import type { WebSocket } from 'ws';
import { lostIssue, lostNumbers, type LostNumber } from '../../../domain/exact-numbers.ts';
import { truncateString } from '../../../domain/pipeline/json-size.ts';

const MAX_CONCURRENT_HANDLERS = 32;

/** Calls a handler of an extension and records its error. @returns false if it threw */
export type CallHandler = (what: string, call: () => Promise<void> | void) => Promise<boolean>;

export type MessageHandler = (message: unknown) => Promise<void> | void;

/**
 * An open WebSocket. It passes on messages in order, with a limit on running handlers. At the limit it stops reading
 * from the client, whose buffers then fill.
 */
export class SocketConnection {
  readonly client: WebSocket;
  readonly #callHandler: CallHandler;
  readonly #handlers: MessageHandler[] = [];
  /** Messages that arrived in the same chunk as the one at which reading stopped. */
  #waiting: { readonly data: Buffer; readonly isBinary: boolean }[] = [];
  #running = 0;
  #isClosed = false;

  constructor(client: WebSocket, callHandler: CallHandler) {
    this.client = client;
    this.#callHandler = callHandler;
    client.on('message', (data: Buffer, isBinary: boolean) => {
      // Without a handler, messages are dropped.
      if (this.#handlers.length === 0 || this.#isClosed) return;
      this.#waiting.push({ data, isBinary });
      this.#handleWaiting();
    });
  }

  /**
   * Adds a handler for messages from now on. A message that is not JSON, or has a number that JavaScript cannot
   * represent, ends the connection (1007).
   */
  onMessage(handler: MessageHandler): void {
    this.#handlers.push(handler);
  }

  /** Closes the connection. Messages that are waiting or still arrive are dropped. */
  close(code: number, reason = ''): void {
    this.#isClosed = true;
    this.#waiting = [];
    this.client.close(code, reason);
    // Else the client's close frame would not be read.
    if (this.client.isPaused) this.client.resume();
  }

  #handleWaiting(): void {
    while (this.#running < MAX_CONCURRENT_HANDLERS) {
      const next = this.#waiting.shift();
      if (next === undefined) {
        if (this.client.isPaused) this.client.resume();
        return;
      }
      void this.#handle(next.data, next.isBinary);
    }
    // A closing connection is still read, else its end would go unnoticed.
    if (this.client.readyState === this.client.OPEN) this.client.pause();
  }

  async #handle(data: Buffer, isBinary: boolean): Promise<void> {
    const parsed = isBinary ? NOT_JSON : parseMessage(data.toString());
    if ('issue' in parsed) {
      this.close(1007, parsed.issue);
      return;
    }
    this.#running += 1;
    const calls = this.#handlers.map((handler) =>
      this.#callHandler('WebSocket message', () => handler(parsed.value)),
    );
    const succeeded = (await Promise.all(calls)).every((each) => each);
    this.#running -= 1;
    if (!succeeded) this.close(1011);
    this.#handleWaiting();
  }
}

const NOT_JSON = { issue: 'message must be JSON' };

/** Maximum length of the reason in a close frame (RFC 6455, 5.5). */
const MAX_REASON_BYTES = 123;

function parseMessage(text: string): { readonly value: unknown } | { readonly issue: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return NOT_JSON;
    throw error;
  }
  const [lost] = lostNumbers(text);
  return lost === undefined ? { value } : { issue: closeReasonOf(lost) };
}

/** The reason for closing, cut at its end if it is too long. The remedy there may be lost. */
function closeReasonOf(lost: LostNumber): string {
  const path = lost.path.join('.') || 'message';
  let reason = `${path}: ${lostIssue(lost)}`;
  while (Buffer.byteLength(reason) > MAX_REASON_BYTES)
    reason = truncateString(reason, reason.length - 1);
  return reason;
}
