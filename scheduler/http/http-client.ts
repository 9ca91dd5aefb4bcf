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
import { HttpRequestError } from './http-request-error.ts';
import { noProxies, Proxies, type ProxySettings } from './proxies.ts';
import {
  endpointOf,
  proxyCredentials,
  proxyServername,
  TunnelAgent,
  type TunnelOptions,
} from './proxy-tunnel.ts';

export interface HttpRequest {
  readonly method: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** The only time limit for the response. */
  readonly signal: AbortSignal;
  /** The receiver acts only once, even if the request is sent again. */
  readonly isRepeatable: boolean;
}

export interface HttpResponse {
  readonly statusCode: number;
  /** By name in lower case, each with all values in order. */
  readonly headers: Readonly<Record<string, readonly string[] | undefined>>;
  readonly body: IncomingMessage;
}

export interface HttpClientOptions extends AddressRulesOptions {
  readonly proxies?: ProxySettings | undefined;
  /** Trusted certificates, as PEM. Default: Node's own. */
  readonly ca?: string | undefined;
  /** How long an idle connection is kept. Milliseconds. Default: {@link MAX_IDLE}. */
  readonly idleMs?: number | undefined;
}

/**
 * How long an idle connection is kept. Milliseconds. Servers close theirs after seconds (Node and Apache after 5,
 * gunicorn after 2) without notice. A request sent at that time fails (RFC 9112, 9.5), and may not be repeatable.
 */
const MAX_IDLE = 1000;

/** Bytes of response headers. Some servers send more cookies and policies than Node's default of 16 KiB. */
const MAX_HEADER_SIZE = 64 * 1024;

/** Methods that may be repeated (RFC 9110, 9.2.2). */
export const idempotentMethods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'OPTIONS',
  'PUT',
  'DELETE',
]);

/** A kept connection was closed before the first byte of a response. */
class StaleConnectionError extends Error {}

/**
 * Sends requests over HTTP/1.1 with kept connections. It follows no redirect, checks the address of each request, and
 * uses the proxies of the environment.
 *
 * Node's lenient parser reads responses, as browsers and curl do: real servers end lines with a bare LF, fold headers,
 * or send both a length and chunks (RFC 9112 2.2, 5.2, 6.3). That is dangerous if two parties disagree on the end of a
 * message. Here a connection has one request at a time, nothing is forwarded, and unexpected bytes close it.
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
    this.#kept = new Connections(this.#rules, true, options);
    this.#fresh = new Connections(this.#rules, false, options);
  }

  /** @throws AddressRefusedError, HttpRequestError, the signal's reason, or an error of Node's HTTP client */
  async request(url: URL, request: HttpRequest): Promise<HttpResponse> {
    if (this.#closed) throw new Error('the HTTP client is closed');
    const proxy = this.#proxies.for(url);
    this.#rules.checkLiteral(url);
    if (proxy !== null) await unlessAborted(this.#checkName(url), request.signal);
    request.signal.throwIfAborted();
    try {
      return await send(this.#kept.to(url, proxy), url, request);
    } catch (error) {
      if (!(error instanceof StaleConnectionError)) throw error;
      if (!request.isRepeatable || this.#closed) throw error.cause;
      // RFC 9112, 9.3.1: the server closed the connection without seeing the request.
      return send(this.#fresh.to(url, proxy), url, request);
    }
  }

  /** Aborts running requests. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#kept.destroy();
    this.#fresh.destroy();
  }

  /** The proxy resolves the name itself, so the check resolves it here too. */
  async #checkName(url: URL): Promise<void> {
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
      throw new HttpRequestError(message, { retryable: true, code, cause: error });
    }
  }
}

/** Rejects as soon as the signal is aborted. */
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

/** The options of a request that depend on the URL and the proxy. */
interface Route {
  readonly connect: (options: RequestOptions) => ClientRequest;
  readonly options: RequestOptions;
}

class Connections {
  readonly #options: AgentOptions;
  readonly #direct: { readonly http: HttpAgent; readonly https: HttpsAgent };
  /** Proxies may have any address. */
  readonly #toProxy: { readonly http: HttpAgent; readonly https: HttpsAgent };
  readonly #tunnels = new Map<string, TunnelAgent>();

  constructor(rules: AddressRules, keepAlive: boolean, given: HttpClientOptions) {
    const { ca, idleMs = MAX_IDLE } = given;
    const options = { keepAlive, timeout: idleMs, ...(ca === undefined ? {} : { ca }) };
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
    const { protocol, pathname, search } = url;
    const path = pathname + search;
    const isSecure = protocol === 'https:';
    if (proxy === null || isSecure) {
      const direct = isSecure ? this.#direct.https : this.#direct.http;
      const agent = proxy === null ? direct : this.#tunnelVia(proxy);
      const connect = isSecure ? httpsRequest : httpRequest;
      return { connect, options: { ...endpointOf(url), path, agent } };
    }
    const viaTls = proxy.protocol === 'https:';
    return {
      connect: viaTls ? httpsRequest : httpRequest,
      options: {
        ...endpointOf(proxy),
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

  #tunnelVia(proxy: URL): TunnelAgent {
    const known = this.#tunnels.get(proxy.href);
    if (known !== undefined) return known;
    const agent = guarded(new TunnelAgent(proxy, this.#options));
    this.#tunnels.set(proxy.href, agent);
    return agent;
  }
}

/** Makes an agent close an idle connection that receives bytes, because they would be taken for the next response. */
function guarded<T extends HttpAgent>(agent: T): T {
  return agent.on('free', (socket: Duplex) => {
    socket.removeListener('data', closeSocket).on('data', closeSocket);
  });
}

function closeSocket(this: Duplex): void {
  this.destroy();
}

function send({ connect, options }: Route, url: URL, request: HttpRequest): Promise<HttpResponse> {
  const { method, headers, body, signal } = request;
  return new Promise((resolve, reject) => {
    const sent = connect({
      ...options,
      method,
      headers: { host: url.host, ...options.headers, ...headers, ...lengthOf(method, body) },
      insecureHTTPParser: true,
      maxHeaderSize: MAX_HEADER_SIZE,
      abandon: signal,
    } as TunnelOptions);
    let answer: IncomingMessage | undefined;
    let hasBegun = false;
    const begin = (): void => void (hasBegun = true);
    const abort = (): void => {
      answer?.destroy(signal.reason as Error);
      sent.destroy(signal.reason as Error);
      // A request without a connection would report the abort only once it is connected.
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', abort, { once: true });
    sent.once('socket', (socket) => {
      socket.removeListener('data', closeSocket);
      socket.once('data', begin);
      sent.once('close', () => socket.removeListener('data', begin));
      if (!sent.reusedSocket) limitConnectTime(socket, url.host);
    });
    sent.once('close', () => signal.removeEventListener('abort', abort));
    // Also handles errors after the response, such as stray bytes. An incomplete body reports its
    // own error.
    sent.on('error', (error) => {
      const wasKept = sent.reusedSocket && !hasBegun && !signal.aborted;
      reject(wasKept ? new StaleConnectionError('closed', { cause: error }) : error);
    });
    const take = (response: IncomingMessage): void => {
      answer = response;
      // An error of a body that nobody reads must not end the process.
      response.on('error', () => {});
      const { statusCode = 0, headersDistinct: distinct } = response;
      resolve({ statusCode, headers: distinct, body: response });
    };
    sent.once('response', take);
    // An unrequested 101: the bytes that follow are not HTTP.
    sent.once('upgrade', (response, socket) => {
      socket.destroy();
      take(response);
    });
    sent.end(body);
  });
}

/** Set for every request that may have a body: for some methods Node would send a body without an end. */
function lengthOf(method: string, body: string | null): Readonly<Record<string, string>> {
  if (body !== null) return { 'content-length': String(Buffer.byteLength(body)) };
  return ['POST', 'PUT', 'PATCH'].includes(method) ? { 'content-length': '0' } : {};
}
