import type { WebSocket } from 'ws';
import { lostIssue, lostNumbers, type LostNumber } from '../../../domain/exact-numbers.ts';
import { start } from '../../../domain/pipeline/size.ts';

/** Messages of one connection whose handlers are under way. */
const MOST_AT_ONCE = 32;

/** Calls a handler of an extension; what it throws is noted. @returns whether it threw nothing */
export type Enter = (what: string, call: () => Promise<void> | void) => Promise<boolean>;

/** Called for each message, parsed. */
export type MessageHandler = (message: unknown) => Promise<void> | void;

/**
 * A WebSocket that is open. Its messages are handed on in the order in which they came, so many at a time; while no more
 * are taken, nothing is read from the client, which notices that by its own buffers.
 */
export class SocketConnection {
  readonly client: WebSocket;
  readonly #enter: Enter;
  readonly #handlers: MessageHandler[] = [];
  /** Read together with the one at which reading was stopped: no more than came in one piece. */
  #waiting: { readonly data: Buffer; readonly isBinary: boolean }[] = [];
  #underWay = 0;
  #isEnded = false;

  constructor(client: WebSocket, enter: Enter) {
    this.client = client;
    this.#enter = enter;
    client.on('message', (data: Buffer, isBinary: boolean) => {
      // Who is to hear them is told of those from then on.
      if (this.#handlers.length === 0 || this.#isEnded) return;
      this.#waiting.push({ data, isBinary });
      this.#goOn();
    });
  }

  /**
   * Calls back for each message from now on. One that is not JSON, or has a number that JavaScript cannot represent, ends
   * the connection (1007).
   */
  onMessage(handler: MessageHandler): void {
    this.#handlers.push(handler);
  }

  /** Ends it from this side: of what the client still sends, or has sent, nothing is handed on any more. */
  close(code: number, reason = ''): void {
    this.#isEnded = true;
    this.#waiting = [];
    this.client.close(code, reason);
    // Or the client's answer to that would not be read.
    if (this.client.isPaused) this.client.resume();
  }

  #goOn(): void {
    while (this.#underWay < MOST_AT_ONCE) {
      const next = this.#waiting.shift();
      if (next === undefined) {
        if (this.client.isPaused) this.client.resume();
        return;
      }
      void this.#handle(next.data, next.isBinary);
    }
    // Of one that is being closed the rest is read: else its end would not be noticed.
    if (this.client.readyState === this.client.OPEN) this.client.pause();
  }

  async #handle(data: Buffer, isBinary: boolean): Promise<void> {
    const parsed = isBinary ? NOT_JSON : parse(data.toString());
    if ('fault' in parsed) {
      this.close(1007, parsed.fault);
      return;
    }
    this.#underWay += 1;
    const calls = this.#handlers.map((handler) =>
      this.#enter('WebSocket message', () => handler(parsed.value)),
    );
    const fine = (await Promise.all(calls)).every((each) => each);
    this.#underWay -= 1;
    if (!fine) this.close(1011);
    this.#goOn();
  }
}

const NOT_JSON = { fault: 'messages are JSON' };

/** Bytes of the reason that a closing frame can hold (RFC 6455, section 5.5). */
const MOST_REASON = 123;

function parse(text: string): { readonly value: unknown } | { readonly fault: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return NOT_JSON;
    throw error;
  }
  const [lost] = lostNumbers(text);
  return lost === undefined ? { value } : { fault: reasonOf(lost) };
}

/** The remedy is what gets lost where there is not room for all. */
function reasonOf(lost: LostNumber): string {
  const path = lost.path.join('.') || 'message';
  let reason = `${path}: ${lostIssue(lost)}`;
  while (Buffer.byteLength(reason) > MOST_REASON) reason = start(reason, reason.length - 1);
  return reason;
}
