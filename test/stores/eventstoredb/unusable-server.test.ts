import { expect } from 'chai';
import type { EventStore } from '../../../domain/event-store.ts';
import {
  serverProblemOf,
  type ServerProblemKind,
  type UnusableServerError,
} from '../../../domain/server-problem.ts';
import type { Timings } from '../../../stores/eventstoredb/connecting/timings.ts';
import { hastyTimings, onWorkbench } from '../../support/eventstoredb-server/workbench.ts';
import { reportingTo } from '../../support/reporting-to.ts';
import { TlsFront } from '../../support/tls-front.ts';

/** Too long for a host name, so no name server is queried. */
const impossibleName = `${'a'.repeat(64)}.invalid`;

/** How often the reason is looked for at most. */
const ATTEMPTS = 3;
/** Long enough for the reason to be found in the meantime. */
const hasty = { ...hastyTimings, pingMs: 1_000 };

describe('an EventStoreDB server that cannot be used', () => {
  let front: TlsFront;
  // Registered before the workbench, which checks that nothing is left open.
  afterEach(() => front.stop());
  const bench = onWorkbench();
  let lines: { readonly level: string; readonly message: string }[];
  beforeEach(async () => {
    lines = [];
    bench().server.access.users = {
      admin: { password: 'changeit', isAdmin: true },
      clerk: { password: 'secret', isAdmin: false },
    };
    front = await TlsFront.start(bench().server.port);
  });

  const secure = (user: string, options = `&tlsCAFile=${front.authority}`): string =>
    `esdb://${user}@127.0.0.1:${front.port}?tls=true${options}`;

  function open(url: string, timings: Partial<Timings> = {}): Promise<EventStore> {
    const at = (level: string) => (message: string) => void lines.push({ level, message });
    const telemetry = reportingTo({ info: at('info'), warn: at('warn'), error: at('error') });
    return bench().open({ url, telemetry, timings });
  }

  /**
   * The problem that makes every operation fail, of the given kind. Repeated, because a busy machine
   * may have no time to find out more than that there was no answer.
   */
  async function problemAt(url: string, kind: ServerProblemKind): Promise<UnusableServerError> {
    for (let attempt = 1; ; attempt += 1) {
      lines.length = 0;
      const store = await open(url, hasty);
      try {
        const error: unknown = await store.ping().catch((failure: unknown) => failure);
        const problem = serverProblemOf(error);
        if (problem?.kind !== kind && attempt < ATTEMPTS) continue;
        if (problem === null) throw new Error(`no problem of the server: ${String(error)}`);
        const { server, message, remedy, lasting } = problem;
        expect(problem.kind).to.equal(kind);
        expect(error).to.include({ code: 'UNAVAILABLE', message });
        await Promise.allSettled([store.head(), store.ping(), store.readAll('', 1)]);
        const level = lasting ? 'error' : 'warn';
        const line = `${message}. ${remedy.charAt(0).toUpperCase()}${remedy.slice(1)}`;
        expect(lines).to.deep.equal([{ level, message: line }]);
        expect(message.startsWith(server)).to.equal(true);
        return problem;
      } finally {
        await store.close();
      }
    }
  }

  it('can be used with the right user, authority and port', async () => {
    const store = await open(secure('admin:changeit'));
    await store.ping();
    expect(lines).to.deep.equal([]);
  });

  it('has rejected the user for a wrong password', async () => {
    const found = await problemAt(secure('admin:wrong'), 'user_rejected');
    expect(found.message).to.include('rejected user `admin`: unknown user or wrong password');
    expect(found.remedy).to.equal('correct the user or the password in SVC_EVENT_STORE_URL');
  });

  it('has rejected a user who may not read the whole log', async () => {
    const found = await problemAt(secure('clerk:secret'), 'rights_missing');
    expect(found.message).to.include('rejected user `clerk`: it may not read the whole log');
    expect(found.remedy).to.equal('use a member of $admins');
  });

  it('gets only one call from a rejected user, because it would reject the next one too', async () => {
    const store = await open(secure('admin:wrong'));
    const { access } = bench().server;
    for (let times = 0; times < 20; times += 1) await store.ping().catch(() => {});
    expect(access.rejected).to.equal(1);
  });

  it('has a certificate of an unknown authority', async () => {
    const found = await problemAt(secure('admin:changeit', ''), 'certificate_untrusted');
    expect(found.remedy).to.include('tlsCAFile').and.include('SVC_EVENT_STORE_URL');
  });

  it('does not offer TLS on the port', async () => {
    const { port } = bench().server;
    const found = await problemAt(
      `esdb://admin:changeit@127.0.0.1:${port}?tls=true`,
      'tls_not_offered',
    );
    expect(found.remedy).to.include('tls=false');
  });

  it('requires TLS on the port', async () => {
    const found = await problemAt(`esdb://127.0.0.1:${front.port}?tls=false`, 'tls_required');
    expect(found.remedy).to.include('tls=true, a user and a password');
  });

  it('is not running', async () => {
    const { port } = bench().server;
    bench().server.stop();
    const found = await problemAt(`esdb://127.0.0.1:${port}?tls=false`, 'connection_refused');
    expect(found.remedy).to.include('start EventStoreDB');
  });

  it('has an unknown name', async () => {
    const found = await problemAt(`esdb://${impossibleName}:2113?tls=false`, 'name_unknown');
    expect(found.remedy).to.include('DNS');
  });

  it('does not respond', async () => {
    bench().server.access.users = undefined;
    bench().server.faults.silentToAll = true;
    await problemAt(bench().server.url, 'no_answer');
  });

  it('is identified although the client searches several nodes', async () => {
    const nodes = `127.0.0.1:${front.port},localhost:${front.port}`;
    await problemAt(`esdb://${nodes}?tls=false`, 'tls_required');
  });

  it('is used again once it is available, which is logged in one line', async () => {
    const { server } = bench();
    server.access.users = undefined;
    const store = await open(server.url, hasty);
    server.stop();
    for (let times = 0; times < 3; times += 1) await store.ping().catch(() => {});
    await bench().restart();
    for (;;) {
      const isBack = await store.ping().then(
        () => true,
        () => false,
      );
      if (isBack) break;
    }
    expect(lines.map(({ level }) => level)).to.deep.equal(['warn', 'info']);
    expect(lines[1]?.message).to.equal(
      `EventStoreDB at 127.0.0.1:${server.port} can be used again`,
    );
  });
});
