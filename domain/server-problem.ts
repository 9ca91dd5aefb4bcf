/** Why a server cannot be used, as health checks, `svc doctor` and the field `cause` of log lines name it. */
export const serverProblemKinds = [
  /** Unknown user, wrong password, or no user although the server requires one. */
  'user_rejected',
  /** The user lacks a right. */
  'rights_missing',
  /** No known authority has signed the server's certificate. */
  'certificate_untrusted',
  /** The server's certificate has expired, or is not valid yet. */
  'certificate_expired',
  /** The server's certificate is for other host names. */
  'certificate_other_host',
  /** TLS is configured, but the server's port does not offer it. */
  'tls_not_offered',
  /** The server's port requires TLS, but TLS is not configured. */
  'tls_required',
  /** Nothing listens on the port. */
  'connection_refused',
  /** The host name cannot be resolved. */
  'name_unknown',
  /** The server responds, but its replica set has no primary. */
  'no_primary',
  /** The server responds, but its cluster has no leader. */
  'no_leader',
  /** The server does not respond, for another reason. */
  'no_answer',
] as const;
export type ServerProblemKind = (typeof serverProblemKinds)[number];

/** Causes that last until somebody changes a setting or the server. */
const lastingKinds: ReadonlySet<ServerProblemKind> = new Set([
  'user_rejected',
  'rights_missing',
  'certificate_untrusted',
  'certificate_expired',
  'certificate_other_host',
  'tls_not_offered',
  'tls_required',
]);

/** A server cannot be used. It is in the `cause` chain of the stores' errors; see {@link serverProblemOf}. */
export class UnusableServerError extends Error {
  readonly kind: ServerProblemKind;
  /** The server's name and its hosts. */
  readonly server: string;
  /** Like the message, without the name of the user; for readers without credentials. */
  readonly summary: string;
  /** The remedy, in one sentence without a full stop. */
  readonly remedy: string;

  /** @param of.message the server that cannot be used and the reason, in one sentence without a full stop */
  constructor(of: {
    readonly kind: ServerProblemKind;
    readonly server: string;
    readonly message: string;
    readonly summary: string;
    readonly remedy: string;
    readonly cause?: unknown;
  }) {
    super(of.message, of.cause === undefined ? undefined : { cause: of.cause });
    this.name = 'UnusableServerError';
    this.kind = of.kind;
    this.server = of.server;
    this.summary = of.summary;
    this.remedy = of.remedy;
  }

  /** Whether it cannot recover by itself. */
  get lasting(): boolean {
    return lastingKinds.has(this.kind);
  }
}

/** The server's problem that caused an error; null if there is another cause or it is unknown. */
export function serverProblemOf(error: unknown): UnusableServerError | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof UnusableServerError) return cause;
  }
  return null;
}
