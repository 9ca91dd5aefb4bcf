import { UnusableServerError, type ServerProblemKind } from '../../domain/server-problem.ts';

/** How a server and its settings are named in messages. */
export interface ServerNames {
  /** `EventStoreDB` */
  readonly product: string;
  /** The server's addresses; never the connection string, which may hold a password. */
  readonly hosts: string;
  /** The user, if the connection string has one. */
  readonly user: string | undefined;
  /** The setting that holds the connection string. */
  readonly setting: string;
  /** The action that is forbidden to a user without the right for an operation. */
  readonly forbidden: (operation: string) => string;
  /** The remedy for the missing right: `use a member of $admins`. */
  readonly grant: string;
  /** Whether a connection with TLS needs a user. Default: false. */
  readonly tlsNeedsUser?: boolean;
  /** The kind of problem if no member leads. */
  readonly leaderless: 'no_primary' | 'no_leader';
}

/** The messages of a server's problems: what cannot be used, why, and what to do. */
export class ServerWords {
  readonly #names: ServerNames;

  constructor(names: ServerNames) {
    this.#names = names;
  }

  get leaderless(): 'no_primary' | 'no_leader' {
    return this.#names.leaderless;
  }

  /** @param of.detail the operation for which a right is missing, or the system's own message */
  problem(
    kind: ServerProblemKind,
    of: { readonly cause: unknown; readonly detail?: string },
  ): UnusableServerError {
    const { product, hosts } = this.#names;
    const { cause, detail = '' } = of;
    const server = `${product} at ${hosts}`;
    const why = (user: string): string => `${server} ${this.#why(kind, detail, user)}`;
    const { user } = this.#names;
    const message = why(user === undefined ? 'a client without user' : `user \`${user}\``);
    const remedy = this.#remedy(kind);
    return new UnusableServerError({
      kind,
      server,
      message,
      summary: why('the user'),
      remedy,
      cause,
    });
  }

  #why(kind: ServerProblemKind, detail: string, user: string): string {
    switch (kind) {
      case 'user_rejected':
        return this.#names.user === undefined
          ? `rejected ${user}`
          : `rejected ${user}: unknown user or wrong password`;
      case 'rights_missing':
        return `rejected ${user}: it may not ${this.#names.forbidden(detail)}`;
      case 'certificate_untrusted':
        return `has a certificate of an unknown authority: ${detail}`;
      case 'certificate_expired':
        return `has a certificate that is not valid now: ${detail}`;
      case 'certificate_other_host':
        return `has a certificate for another host: ${detail}`;
      case 'tls_not_offered':
        return 'does not offer TLS on this port';
      case 'tls_required':
        return 'requires TLS on this port';
      case 'connection_refused':
        return 'is not running: the connection was refused';
      case 'name_unknown':
        return 'cannot be found: the host name is unknown';
      case 'no_primary':
        return 'answers, but its replica set has no primary';
      case 'no_leader':
        return 'answers, but its cluster has no leader';
      case 'no_answer':
        return `is unavailable: ${detail}`;
    }
  }

  #remedy(kind: ServerProblemKind): string {
    const { product, setting, user, grant, tlsNeedsUser = false } = this.#names;
    const needed = tlsNeedsUser && user === undefined ? ', a user and a password' : '';
    switch (kind) {
      case 'user_rejected':
        return user === undefined
          ? `add a user and a password to ${setting}`
          : `correct the user or the password in ${setting}`;
      case 'rights_missing':
        return grant;
      case 'certificate_untrusted':
        return `write tlsCAFile=<file> in ${setting}, with the certificate of the authority that signed the server's`;
      case 'certificate_expired':
        return "renew the server's certificate, or set the clocks";
      case 'certificate_other_host':
        return `use a host name in ${setting} that the certificate contains`;
      case 'tls_not_offered':
        return `write tls=false in ${setting}, or enable TLS in ${product}`;
      case 'tls_required':
        return `write tls=true${needed} in ${setting}`;
      case 'connection_refused':
        return `start ${product}, or correct the host and the port in ${setting}`;
      case 'name_unknown':
        return `correct the host name in ${setting}, or its entry in DNS`;
      case 'no_primary':
        return 'start the missing members: a majority of them must be up and reach each other';
      case 'no_leader':
        return 'start the missing nodes: a majority of them must be up and reach each other';
      case 'no_answer':
        return `check the server, and whether a firewall drops connections to the host in ${setting}`;
    }
  }
}
