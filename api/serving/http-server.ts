import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import type { Express } from 'express';
import { HttpError, type ErrorCode } from '../errors.ts';
import { messageClasses } from './message-classes.ts';
import { rawResponse } from './raw-response.ts';

// Timeouts in milliseconds.
const HEADERS_TIMEOUT = 15_000;
const REQUEST_TIMEOUT = 60_000;
const KEEP_ALIVE_TIMEOUT = 65_000;
/** Also applies to a client that does not read its response. */
const IDLE_TIMEOUT = 120_000;
/** The most bytes of a request's line and headers together. */
const MAX_HEADER_BYTES = 16_384;
/** The most headers of a request. The interface counts them; see `maxHeadersCount` below. */
export const MAX_HEADERS = 100;
/** How often slow clients are checked for. Milliseconds. */
const CHECK_INTERVAL = 5_000;

/**
 * A server with limits for slow, large and malformed requests. Malformed requests also receive the error body of all
 * endpoints.
 * @param options times in milliseconds
 */
export function createHttpServer(
  listener: RequestListener | Express,
  options: {
    readonly headersTimeout?: number;
    readonly checkEvery?: number;
    /** A PEM certificate with its chain, and its key, to serve HTTPS; null: plain HTTP. */
    readonly tls?: CertificateWithKey | null;
  } = {},
): Server {
  const { tls = null } = options;
  const bounds = {
    ...messageClasses(listener),
    headersTimeout: options.headersTimeout ?? HEADERS_TIMEOUT,
    requestTimeout: REQUEST_TIMEOUT,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT,
    connectionsCheckingInterval: options.checkEvery ?? CHECK_INTERVAL,
    maxHeaderSize: MAX_HEADER_BYTES,
    // The interface responds with a body instead.
    requireHostHeader: false,
  };
  const server =
    tls === null
      ? createServer(bounds, listener)
      : createTlsServer(
          { ...bounds, ...secureContext(tls), handshakeTimeout: HEADERS_TIMEOUT },
          listener,
        );
  // No limit, because Node 20 silently drops headers beyond a limit, and later versions report an
  // overflow of bytes.
  server.maxHeadersCount = 0;
  server.setTimeout(IDLE_TIMEOUT);
  server.on('clientError', refuse);
  // Unknown expectations may be ignored (RFC 9110, 10.1.1); `node:http` would answer 417, without a body.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  return server;
}

/** A PEM certificate with its chain, and its key. */
interface CertificateWithKey {
  readonly cert: string;
  readonly key: string;
}

/**
 * The TLS options of the server, at its start and with a renewed certificate. Options of Node cannot lower the version.
 */
export function secureContext({ cert, key }: CertificateWithKey): {
  readonly cert: string;
  readonly key: string;
  readonly minVersion: 'TLSv1.2';
} {
  return { cert, key, minVersion: 'TLSv1.2' };
}

/** The responses to errors of Node's parser. */
const faults: Readonly<Record<string, readonly [code: ErrorCode, message: string]>> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', `the headers exceed ${MAX_HEADER_BYTES} bytes`],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['payload_too_large', "the body's chunk extensions are too long"],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'the request did not arrive in time'],
};

function refuse(fault: NodeJS.ErrnoException, socket: Duplex): void {
  // The client is gone, or a response has already started.
  if (fault.code === 'ECONNRESET' || !socket.writable || hasBegunResponse(socket)) {
    socket.destroy();
    return;
  }
  const [code, message] = faults[fault.code ?? ''] ?? [
    'bad_request',
    'this is not an HTTP request',
  ];
  const error = new HttpError(code, message, detailsOf(code, message));
  socket.end(rawResponse(error), () => socket.destroy());
}

function detailsOf(code: ErrorCode, issue: string): Record<string, unknown> {
  if (code === 'bad_request') {
    return { field: 'request', issue, issues: [{ field: 'request', issue }] };
  }
  return code === 'headers_too_large' ? { limit: MAX_HEADER_BYTES } : {};
}

/** `node:http` keeps the response in progress on the socket, outside its types. */
function hasBegunResponse(socket: Duplex): boolean {
  const { _httpMessage: response } = socket as Duplex & {
    readonly _httpMessage?: { readonly headersSent: boolean } | null;
  };
  return response?.headersSent === true;
}
