import { request as httpRequest, type ClientRequest } from 'node:http';
import { Agent, request as httpsRequest, type AgentOptions, type RequestOptions } from 'node:https';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { CONNECT_TIMEOUT, connectTimeoutError } from './connect-timeout.ts';
import { normalizeHost } from './host-list.ts';
import { HttpRequestError } from './http-request-error.ts';

/** The header with the user and password of a proxy's URL, if it has any. */
export function proxyCredentials({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === '' && password === '') return {};
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const basic = Buffer.from(credentials).toString('base64');
  return { 'proxy-authorization': `Basic ${basic}` };
}

/** Host and port of a URL, as sockets take them. */
export function endpointOf({ protocol, hostname, port }: URL): { host: string; port: number } {
  const host = hostname.replace(/^\[|\]$/g, '');
  return { host, port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) };
}

/** The name that a proxy's certificate must have. Node's default would be the `Host` header. */
export function proxyServername({ hostname }: URL): string {
  return isIP(normalizeHost(hostname)) === 0 ? hostname : '';
}

export interface TunnelOptions extends RequestOptions {
  /** Aborted once no request waits for the tunnel: Node does not tell an agent about destroyed requests. */
  readonly abandon?: AbortSignal;
}

/** Connects to `https:` hosts through a proxy, by CONNECT (RFC 9110, 9.3.6). */
export class TunnelAgent extends Agent {
  readonly #proxy: URL;
  readonly #opening = new Set<ClientRequest>();

  constructor(proxy: URL, options: AgentOptions) {
    super(options);
    this.#proxy = proxy;
  }

  override createConnection(
    options: TunnelOptions,
    callback?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    void this.#connect(options, callback as (error: Error | null, socket?: Duplex) => void);
  }

  async #connect(
    options: TunnelOptions,
    done: (error: Error | null, socket?: Duplex) => void,
  ): Promise<void> {
    let socket: Duplex;
    try {
      const tunnel = await this.#open(options);
      socket = super.createConnection({ ...options, socket: tunnel } as RequestOptions) as Duplex;
    } catch (error) {
      done(error as Error);
      return;
    }
    done(null, socket);
  }

  override destroy(): void {
    for (const request of this.#opening) request.destroy();
    super.destroy();
  }

  #open({ host, port, abandon }: TunnelOptions): Promise<Duplex> {
    const name = host?.includes(':') === true ? `[${host}]` : (host ?? '');
    const target = `${name}:${String(port ?? 443)}`;
    const proxy = this.#proxy;
    const { ca } = this.options;
    const connect = proxy.protocol === 'https:' ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const request = connect({
        ...endpointOf(proxy),
        servername: proxyServername(proxy),
        method: 'CONNECT',
        path: target,
        headers: { host: target, ...proxyCredentials(proxy) },
        agent: false,
        ...(ca === undefined ? {} : { ca }),
      });
      this.#opening.add(request);
      const abandoned = (): void => void request.destroy();
      abandon?.addEventListener('abort', abandoned, { once: true });
      const late = setTimeout(
        () => request.destroy(connectTimeoutError(proxy.host)),
        CONNECT_TIMEOUT,
      );
      request.once('close', () => {
        clearTimeout(late);
        abandon?.removeEventListener('abort', abandoned);
        this.#opening.delete(request);
      });
      request.once('connect', ({ statusCode = 0 }, socket, head) => {
        clearTimeout(late);
        if (statusCode >= 200 && statusCode < 300) {
          socket.unshift(head);
          return resolve(socket);
        }
        socket.destroy();
        return reject(refusedBy(proxy, statusCode));
      });
      request.on('error', (error: Error & { code?: string }) => {
        const message = `could not reach the proxy ${proxy.host}: ${error.message || error.code || error.name}`;
        const code = error.code ?? error.name;
        reject(new HttpRequestError(message, { retryable: true, code, cause: error }));
      });
      request.end();
    });
  }
}

function refusedBy(proxy: URL, status: number): HttpRequestError {
  const message = `the proxy ${proxy.host} answered CONNECT with ${status}`;
  const remedy = status === 407 ? '; HTTPS_PROXY must contain its user and password' : '';
  const retryable = status < 400 || status >= 500;
  return new HttpRequestError(message + remedy, { retryable, code: `PROXY_${status}` });
}
