import { expect } from 'chai';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mapInBatches } from '../../../domain/map-in-batches.ts';
import {
  causes,
  settingsOf,
  startServers,
  stopServers,
  type Cause,
} from '../../support/unusable-servers.ts';
import { svc } from '../cli/command-line.ts';

/** How many causes are examined together. The doctor mostly waits for the servers. */
const CONCURRENCY = 5;
/** How often a cause is examined at most. */
const ATTEMPTS = 3;

/** A folder that the doctor does not create, and a port at which no service answers. */
const nowhere = {
  SVC_DATA_DIR: join(tmpdir(), `no-service-${String(process.pid)}`),
  SVC_URL: 'http://127.0.0.1:1',
};

/** What the doctor finds, by check. */
interface Examination {
  readonly code: number;
  readonly of: (check: string) => readonly Readonly<Record<string, unknown>>[];
}

/** Whether the doctor has found the cause, and nothing else. */
function isExpected(cause: Cause | null, { of }: Examination): boolean {
  return ['log', 'views'].every((check) => {
    const [finding] = of(check);
    if (cause?.where.doctor !== check) return finding?.['verdict'] === 'ok';
    return String(finding?.['advice']).includes(cause.remedy);
  });
}

describe('svc doctor with a server that it cannot use', function () {
  this.timeout(120_000);
  const examinations = new Map<Cause | null, Examination>();
  const found = (cause: Cause | null): Examination => {
    const examination = examinations.get(cause);
    if (examination === undefined) throw new Error('not examined');
    return examination;
  };

  /** Repeated, because a busy machine may have no time to find out more than that there was no answer. */
  async function examine(cause: Cause | null): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const examination = await examineOnce(cause);
      examinations.set(cause, examination);
      if (isExpected(cause, examination) || attempt === ATTEMPTS) return;
    }
  }

  async function examineOnce(cause: Cause | null): Promise<Examination> {
    const servers = await startServers();
    try {
      const env = { ...settingsOf(servers), ...nowhere, ...cause?.set(servers) };
      const { code, json } = await svc(['doctor', '--json', '--quick'], { env });
      const findings = json['findings'] as ReturnType<Examination['of']>;
      const of = (check: string) => findings.filter((each) => each['check'] === check);
      return { code, of };
    } finally {
      await stopServers(servers);
    }
  }

  before(() => mapInBatches([null, ...causes], CONCURRENCY, examine));

  it('finds nothing wrong with two that it can use', () => {
    const { of } = found(null);
    const verdicts = [...of('log'), ...of('views')].map(({ verdict }) => verdict);
    expect(verdicts).to.deep.equal(['ok', 'ok']);
  });

  for (const cause of causes) {
    const { title, where, remedy } = cause;
    it(`names the remedy, and no other server: ${title}`, () => {
      const { code, of } = found(cause);
      expect(code).to.equal(1);
      const [finding = {}, ...more] = of(where.doctor);
      expect(more).to.deep.equal([]);
      expect(finding).to.include({ verdict: 'fault' });
      expect(finding['advice']).to.include(remedy);
      const other = where.doctor === 'log' ? 'views' : 'log';
      expect(of(other).map(({ verdict }) => verdict)).to.deep.equal(['ok']);
    });
  }
});
