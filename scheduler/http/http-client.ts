import {
  Agent as HttpAgent,
  request as httpRequest,
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest, type AgentOptions } from 'node:https';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { AddressRules, type AddressRulesOptions } from './address-rules.ts';
import { limitConnectTime } from './connect-timeout.ts';
import { normalizeHost } from './host-list.ts';
import { HttpFailure } from './http-failure.ts';
import { noProxies, Proxies, type ProxySettings } from './proxies.ts';
import {
  proxyAddress,
  proxyCredentials,
  proxyServername,
  TunnelAgent,
  type TunnelOptions,
} from './proxy-tunnel.ts';

/** A request. */
export interface HttpRequest {
  readonly method: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** The only limit of time for the answer. */
  readonly signal: AbortSignal;
  /** The receiver does it once, however often it is sent. */
  readonly isRepeatable: boolean;
}

/** An answer whose body is still to be read, as the server wrote it. */
export interface HttpAnswer {
  readonly statusCode: number;
  /** By name in lower case, each with all its values in order. */
  readonly headers: Readonly<Record<string, readonly string[] | undefined>>;
  readonly body: IncomingMessage;
}

export interface HttpClientOptions extends AddressRulesOptions {
  readonly proxies?: ProxySettings | undefined;
  /** Certificates that are trusted, as PEM, in the place of Node's own. */
  readonly ca?: string | undefined;
}

/**
 * How long a connection that nothing goes over is kept, whatever the server offers. Milliseconds. Servers close theirs
 * after seconds (Node's and Apache's after 5, gunicorn's after 2) and say nothing before: a request that goes out at
 * that moment fails (RFC 9112, 9.5), and what is not repeatable may not be sent again.
 */
const LONGEST_IDLE = 1000;

/** Bytes of the headers of an answer. Node's own limit, 16 KiB, is less than some servers send in cookies and policies. */
const MOST_HEADERS = 64 * 1024;

/** Methods that may be sent again (RFC 9110, 9.2.2). */
export const idempotentMethods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'OPTIONS',
  'PUT',
  'DELETE',
]);

/** A kept connection was closed before the first byte of an answer. */
class ClosedUnanswered extends Error {}

/**
 * Sends requests over HTTP/1.1 and keeps their connections. It follows no redirect, checks where each request goes, and
 * goes by the proxies of the environment.
 *
 * Answers are read by Node's lenient parser, as browsers and curl would: real servers end lines with a bare LF, fold
 * headers, or send both a length and chunks (RFC 9112 2.2, 5.2, 6.3). Leniency is dangerous where two parties disagree
 * on the end of a message. Here a connection has one request at a time, nothing is forwarded, and bytes that come
 * unasked end the connection.
 */
export class HttpClient {
  readonly #rules: AddressRules;
  readonly #proxies: Proxies;
  readonly #kept: Connections;
  readonly #fresh: Connections;
  #closed = false;

  constructor(options: HttpClientOptions) {
    this.#rules = new AddressRules(options);
    this.#proxies = new Proxies(options.proxies ?? noProxies);
    this.#kept = new Connections(this.#rules, true, options.ca);
    this.#fresh = new Connections(this.#rules, false, options.ca);
  }

  /**
   * @throws AddressRefused, HttpFailure, the signal's reason, or what Node's client fails with
   */
  async request(url: URL, request: HttpRequest): Promise<HttpAnswer> {
    if (this.#closed) throw new Error('the HTTP client is closed');
    const proxy = this.#proxies.for(url);
    this.#rules.checkLiteral(url);
    if (proxy !== null) await unlessAborted(this.#checkBefore(url), request.signal);
    request.signal.throwIfAborted();
    try {
      return await send(this.#kept.to(url, proxy), url, request);
    } catch (error) {
      if (!(error instanceof ClosedUnanswered)) throw error;
      if (!request.isRepeatable || this.#closed) throw error.cause;
      // RFC 9112, 9.3.1: the server closed it while the request was on its way, and has not seen it.
      return send(this.#fresh.to(url, proxy), url, request);
    }
  }

  /** Breaks off what is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#kept.destroy();
    this.#fresh.destroy();
  }

  /** A proxy resolves the name by itself, so it is checked by being resolved here too. */
  async #checkBefore(url: URL): Promise<void> {
    const host = normalizeHost(url.hostname);
    if (isIP(host) !== 0) return;
    try {
      await this.#rules.checkName(host);
    } catch (error) {
      if (!(error instanceof Error && 'syscall' in error)) throw error;
      if (this.#rules.lists(host)) return;
      const message =
        `${host} cannot be resolved here, so its address cannot be checked (${error.message}); ` +
        'to leave that to the proxy, add the name to SVC_HTTP_ALLOW_PRIVATE';
      const code = 'code' in error ? String(error.code) : error.name;
      throw new HttpFailure(message, { retryable: true, code, cause: error });
    }
  }
}

/** Nobody waits for a look-up any longer than for the request. */
async function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  let abort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** How to reach a host: the options of a request, but for what the request itself says. */
interface Route {
  readonly connect: (options: RequestOptions) => ClientRequest;
  readonly options: RequestOptions;
}

/** The connections to hosts and proxies. */
class Connections {
  readonly #options: AgentOptions;
  readonly #direct: { readonly http: HttpAgent; readonly https: HttpsAgent };
  /** To the proxies themselves, which may be anywhere. */
  readonly #toProxy: { readonly http: HttpAgent; readonly https: HttpsAgent };
  readonly #tunnels = new Map<string, TunnelAgent>();

  constructor(rules: AddressRules, keepAlive: boolean, ca: string | undefined) {
    const options = { keepAlive, timeout: LONGEST_IDLE, ...(ca === undefined ? {} : { ca }) };
    this.#options = options;
    const checked = { ...options, lookup: rules.lookup };
    this.#direct = {
      http: guarded(new HttpAgent(checked)),
      https: guarded(new HttpsAgent(checked)),
    };
    this.#toProxy = {
      http: guarded(new HttpAgent(options)),
      https: guarded(new HttpsAgent(options)),
    };
  }

  to(url: URL, proxy: URL | null): Route {
    const { protocol, hostname, port, pathname, search } = url;
    const isSecure = protocol === 'https:';
    const connect = isSecure ? httpsRequest : httpRequest;
    const host = hostname.replace(/^\[|\]$/g, '');
    const there = { host, port: port === '' ? (isSecure ? 443 : 80) : Number(port) };
    const path = pathname + search;
    if (proxy === null) {
      const agent = isSecure ? this.#direct.https : this.#direct.http;
      return { connect, options: { ...there, path, agent } };
    }
    if (isSecure) return { connect, options: { ...there, path, agent: this.#tunnelBy(proxy) } };
    const viaTls = proxy.protocol === 'https:';
    return {
      connect: viaTls ? httpsRequest : httpRequest,
      options: {
        ...proxyAddress(proxy),
        // Absolute form (RFC 9112, 3.2.2).
        path: `${protocol}//${url.host}${path}`,
        agent: viaTls ? this.#toProxy.https : this.#toProxy.http,
        headers: proxyCredentials(proxy),
        ...(viaTls ? { servername: proxyServername(proxy) } : {}),
      },
    };
  }

  destroy(): void {
    const agents = [...Object.values(this.#direct), ...Object.values(this.#toProxy)];
    for (const agent of [...agents, ...this.#tunnels.values()]) agent.destroy();
  }

  #tunnelBy(proxy: URL): TunnelAgent {
    const known = this.#tunnels.get(proxy.href);
    if (known !== undefined) return known;
    const agent = guarded(new TunnelAgent(proxy, this.#options));
    this.#tunnels.set(proxy.href, agent);
    return agent;
  }
}

/**
 * Lets an agent close an idle connection over which something comes: it would be taken for the next answer. Once, also
 * where a request that was given the connection ended before it took it.
 */
function guarded<T extends HttpAgent>(agent: T): T {
  return agent.on('free', (socket: Duplex) => {
    socket.removeListener('data', endStray).on('data', endStray);
  });
}

function endStray(this: Duplex): void {
  this.destroy();
}

function send({ connect, options }: Route, url: URL, request: HttpRequest): Promise<HttpAnswer> {
  const { method, headers, body, signal } = request;
  return new Promise((resolve, reject) => {
    const sent = connect({
      ...options,
      method,
      headers: { host: url.host, ...options.headers, ...headers, ...lengthOf(method, body) },
      insecureHTTPParser: true,
      maxHeaderSize: MOST_HEADERS,
      abandon: signal,
    } as TunnelOptions);
    let answer: IncomingMessage | undefined;
    let hasBegun = false;
    const begin = (): void => void (hasBegun = true);
    const abort = (): void => {
      answer?.destroy(signal.reason as Error);
      sent.destroy(signal.reason as Error);
      // A request that has no connection yet says so only once it has one.
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', abort, { once: true });
    sent.once('socket', (socket) => {
      socket.removeListener('data', endStray);
      socket.once('data', begin);
      sent.once('close', () => socket.removeListener('data', begin));
      if (!sent.reusedSocket) limitConnectTime(socket, url.host);
    });
    sent.once('close', () => signal.removeEventListener('abort', abort));
    // Also what comes after the answer, such as bytes that no message is: the answer's own end says what it lacks.
    sent.on('error', (error) => {
      const wasKept = sent.reusedSocket && !hasBegun && !signal.aborted;
      reject(wasKept ? new ClosedUnanswered('closed', { cause: error }) : error);
    });
    const take = (response: IncomingMessage): void => {
      answer = response;
      // Whoever reads the body hears of it; one that nobody reads must not end the process.
      response.on('error', () => {});
      const { statusCode = 0, headersDistinct: distinct } = response;
      resolve({ statusCode, headers: distinct, body: response });
    };
    sent.once('response', take);
    // 101, which nobody has asked for: what follows is not HTTP.
    sent.once('upgrade', (response, socket) => {
      socket.destroy();
      take(response);
    });
    sent.end(body);
  });
}

/** Written for every request that may have a body: of some methods Node would send one whose end nobody sees. */
function lengthOf(method: string, body: string | null): Readonly<Record<string, string>> {
  if (body !== null) return { 'content-length': String(Buffer.byteLength(body)) };
  return ['POST', 'PUT', 'PATCH'].includes(method) ? { 'content-length': '0' } : {};
}
