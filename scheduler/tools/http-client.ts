import type { Agent, Dispatcher, request } from 'undici';
import { publicLookup, type AddressCheck, type LookUpAll } from './private-addresses.ts';

/** What is given with a request. */
export type HttpOptions = Pick<
  Dispatcher.RequestOptions<null>,
  'method' | 'headers' | 'body' | 'signal'
>;

/**
 * How long a connection that nothing goes over is kept, whatever the server offers. Milliseconds. Servers close theirs
 * after seconds (Node's and Apache's after 5, gunicorn's after 2) and say nothing before: a request that goes out at
 * that moment fails (RFC 9112, 9.5), and what is not idempotent may not be sent again.
 */
const LONGEST_IDLE = 1000;

/**
 * Makes requests and keeps their connections. The library is loaded by the first of them: it is a tenth of what a start
 * has to load, and many processes never make any.
 */
export class HttpClient {
  readonly #connect: Agent.Options['connect'];
  #opened: Promise<{ readonly agent: Agent; readonly request: typeof request }> | undefined;
  #closed = false;

  /**
   * @param options.allowPrivate lets requests go to loopback, private and link-local addresses
   * @param options.lookUpAll in the place of `dns.lookup`
   * @param options.isPrivate which addresses are private
   */
  constructor(options: {
    readonly allowPrivate: boolean;
    readonly lookUpAll?: LookUpAll | undefined;
    readonly isPrivate: AddressCheck;
  }) {
    const { allowPrivate, lookUpAll, isPrivate } = options;
    this.#connect = allowPrivate ? {} : { lookup: publicLookup(lookUpAll, isPrivate) };
  }

  /** No redirect is followed, and no time limit is set: the caller's signal is the one that counts. */
  async request(url: URL, options: HttpOptions): Promise<Dispatcher.ResponseData> {
    const opened = await (this.#opened ??= this.#open().catch((error: unknown) => {
      // The next request tries again.
      this.#opened = undefined;
      throw error;
    }));
    if (this.#closed) throw new Error('the client of HTTP is closed');
    return opened.request<null>(url, { ...options, dispatcher: opened.agent });
  }

  /** Breaks off what is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    await (await this.#opened)?.agent.destroy();
  }

  async #open(): Promise<{ readonly agent: Agent; readonly request: typeof request }> {
    // The whole of the package: by its names it can't be had from a bundle.
    const { default: undici } = await import('undici');
    const connect = { ...this.#connect };
    const agent = new undici.Agent({
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: LONGEST_IDLE,
      keepAliveMaxTimeout: LONGEST_IDLE,
      connect,
    });
    return { agent, request: undici.request };
  }
}
