import { Agent, get, type IncomingMessage } from 'node:http';
import { found, type WaitOptions } from './signals.ts';

/** One message of server-sent events. */
export interface StreamMessage {
  readonly id: string;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** A client of server-sent events that keeps all messages. */
export class EventStream {
  readonly status: number;
  readonly contentType: string;
  readonly messages: StreamMessage[] = [];
  /** The received bytes as a string. */
  text = '';
  /** The last received id, even outside of a message. */
  lastId = '';
  ended = false;
  readonly #response: IncomingMessage;
  #rest = '';

  private constructor(response: IncomingMessage) {
    this.#response = response;
    this.status = response.statusCode ?? 0;
    this.contentType = response.headers['content-type'] ?? '';
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => this.#take(chunk));
    response.on('close', () => (this.ended = true));
    // One side closed the connection: the stream has ended.
    response.on('error', () => (this.ended = true));
  }

  /** Resolves when the response has started. */
  static open(
    url: string,
    token: string | null,
    headers: Readonly<Record<string, string>> = {},
    agent?: Agent,
  ): Promise<EventStream> {
    const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
    return new Promise((resolve, reject) => {
      get(url, { agent: agent ?? false, headers: { ...authorization, ...headers } }, (response) =>
        resolve(new EventStream(response)),
      ).on('error', reject);
    });
  }

  /** The messages of changes, without those of the stream itself. */
  get changes(): readonly StreamMessage[] {
    return this.messages.filter(({ event }) => event.startsWith('run.'));
  }

  /** Their names, in order. */
  get names(): readonly string[] {
    return this.changes.map(({ event }) => event);
  }

  /** The first matching message. */
  message(fits: (message: StreamMessage) => boolean, options: WaitOptions = {}) {
    const what = options.what ?? `a matching message; there are ${this.names.join(', ')}`;
    return found(() => this.messages.find(fits), { what, ...options });
  }

  /** The first message with a name. */
  named(event: string, options: WaitOptions = {}): Promise<StreamMessage> {
    return this.message((message) => message.event === event, { what: event, ...options });
  }

  /** Stops reading for now. */
  pause(): void {
    this.#response.pause();
  }

  resume(): void {
    this.#response.resume();
  }

  close(): void {
    this.#response.destroy();
  }

  #take(chunk: string): void {
    this.text += chunk;
    const blocks = (this.#rest + chunk).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    for (const block of blocks) this.#takeBlock(block);
  }

  #takeBlock(block: string): void {
    const fields = new Map<string, string>();
    for (const line of block.split('\n')) {
      const colon = line.indexOf(':');
      if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trimStart());
    }
    this.lastId = fields.get('id') ?? this.lastId;
    const data = fields.get('data');
    if (data === undefined) return;
    this.messages.push({
      id: this.lastId,
      event: fields.get('event') ?? 'message',
      data: JSON.parse(data) as Record<string, unknown>,
    });
  }
}
