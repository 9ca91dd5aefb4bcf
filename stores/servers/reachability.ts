import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ServerProblemKind } from '../../domain/server-problem.ts';

/** How to reach a host in the way its client does. */
export interface Address {
  readonly host: string;
  readonly port: number;
  /** null: without TLS. */
  readonly tls: {
    /** Trusted authorities, in PEM; default: Node's. */
    readonly ca?: string | Buffer | readonly (string | Buffer)[] | undefined;
    /** Whether an untrusted certificate is accepted. Default: false. */
    readonly trustsAll?: boolean;
    /** Whether the certificate may name another host. Default: false. */
    readonly anyName?: boolean;
  } | null;
  /** A first message of the protocol, to which every server responds. */
  readonly greeting: Buffer;
}

/** The result of an attempt to connect: a problem, or that the server responds. */
export interface Reachability {
  readonly kind: ServerProblemKind | 'answers';
  /** The system's own message; empty if there is none. */
  readonly detail: string;
}

/** How long one attempt may take. Milliseconds. */
const ATTEMPT_MS = 800;

/** The first byte of a TLS alert, with which a server responds to anything that is not TLS. */
const TLS_ALERT = 0x15;

const unknownName = new Set(['ENOTFOUND', 'EAI_AGAIN', 'ENODATA', 'ESERVFAIL', 'ENONAME']);

/** Node's codes for certificates that are rejected for other reasons. */
const untrusted =
  /^(?:CERT_|UNABLE_TO_|DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH|ERROR_IN_CERT)/;

/**
 * Finds out by connecting why a server cannot be reached. Clients do not report it in machine-readable form: gRPC has
 * one status for everything, and discovery drops the errors of all nodes. Never rejects.
 *
 * @param signal ends it early
 */
export async function reachabilityOf(address: Address, signal: AbortSignal): Promise<Reachability> {
  const { tls } = address;
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  // A server that closes or ignores such a connection may use TLS when this does not, or the reverse. Both ways are
  // tried at once, as time is short.
  const secure = handshake({ ...address, tls: tls ?? { trustsAll: true } }, either);
  const plain = greet(address, either);
  try {
    const usual = await (tls === null ? plain : secure);
    if (usual.kind !== 'no_answer') return usual;
    const other = await (tls === null ? secure : plain);
    if (other.kind !== 'answers') return usual;
    return { ...usual, kind: tls === null ? 'tls_required' : 'tls_not_offered' };
  } finally {
    stop.abort();
  }
}

/** The meaning of a failed system call or handshake; `no_answer` for others. */
export function reachabilityFrom(error: unknown): Reachability {
  const detail = error instanceof Error ? error.message.trim() : String(error);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  // The error of a name with several addresses.
  const [first] = error instanceof AggregateError ? error.errors : [];
  if (first !== undefined) return reachabilityFrom(first);
  if (code === 'ECONNREFUSED') return { kind: 'connection_refused', detail };
  if (unknownName.has(code)) return { kind: 'name_unknown', detail };
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return { kind: 'certificate_other_host', detail };
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return { kind: 'certificate_expired', detail };
  }
  if (untrusted.test(code)) return { kind: 'certificate_untrusted', detail };
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG') {
    return { kind: 'tls_not_offered', detail: 'the answer was not TLS' };
  }
  return { kind: 'no_answer', detail };
}

function handshake(
  { host, port, tls, greeting }: Address,
  signal: AbortSignal,
): Promise<Reachability> {
  const { ca, trustsAll = false, anyName = false } = tls ?? {};
  const open = (): Socket =>
    connectTls({
      host,
      port,
      // An address is not allowed as a server name.
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(ca === undefined ? {} : { ca: ca as string | Buffer | (string | Buffer)[] }),
      ...(anyName ? { checkServerIdentity: () => undefined } : {}),
      rejectUnauthorized: !trustsAll,
      ALPNProtocols: ['h2', 'http/1.1'],
    });
  return attempt(open, 'secureConnect', greeting, signal, () => ({ kind: 'answers', detail: '' }));
}

function greet({ host, port, greeting }: Address, signal: AbortSignal): Promise<Reachability> {
  const open = (): Socket => connectTcp({ host, port });
  return attempt(open, 'connect', greeting, signal, (chunk) =>
    chunk[0] === TLS_ALERT
      ? { kind: 'tls_required', detail: 'the answer was a TLS alert' }
      : { kind: 'answers', detail: '' },
  );
}

/** Connects, sends the greeting and waits for the first bytes. Never rejects. */
function attempt(
  open: () => Socket,
  connected: 'connect' | 'secureConnect',
  greeting: Buffer,
  signal: AbortSignal,
  meaningOf: (chunk: Buffer) => Reachability,
): Promise<Reachability> {
  return new Promise((resolve) => {
    const socket = open();
    const stop = (): void => finish({ kind: 'no_answer', detail: 'it was stopped' });
    const finish = (result: Reachability): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      socket.destroy();
      resolve(result);
    };
    const late = `no answer within ${ATTEMPT_MS} ms`;
    const timer = setTimeout(() => finish({ kind: 'no_answer', detail: late }), ATTEMPT_MS);
    // The listener stays, because a destroyed socket may still report an error.
    socket.on('error', (error) => finish(reachabilityFrom(error)));
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop);
    socket.once(connected, () => {
      // With TLS, the server has already responded.
      if (connected === 'secureConnect') finish({ kind: 'answers', detail: '' });
      else socket.write(greeting);
    });
    socket.once('data', (chunk: Buffer) => finish(meaningOf(chunk)));
    socket.once('close', () => finish({ kind: 'no_answer', detail: 'the connection was closed' }));
  });
}
