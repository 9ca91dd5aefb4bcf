import { expect } from 'chai';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { MisfirePolicy } from '../../../domain/vocabulary.ts';
import { addTask, onLog } from '../../app/archive/small-log.ts';
import { svc } from '../../app/cli/command-line.ts';
import {
  ServiceProcess,
  buildService,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { Ledger } from '../ledger.ts';
import { svcProcess } from '../svc-process.ts';

const DAY = 86_400_000;
const DUE_IN_THREE_DAYS = 3 * 24 * 60;

describe('a service restored from a backup that is three days old', function () {
  this.timeout(300_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  before(() => buildService());

  /** The nominal times of a task's fires up to a time. */
  const firesOf = (ledger: Ledger, taskId: string, upTo: number): readonly string[] =>
    ledger
      .fires(taskId)
      .flatMap((event) => (event.type === 'Fired' ? [event.data.nominal] : []))
      .filter((nominal) => Date.parse(nominal) <= upTo);

  const skippedOf = (ledger: Ledger, taskId: string): number =>
    ledger
      .fires(taskId)
      .reduce((sum, event) => sum + (event.type === 'FiresSkipped' ? event.data.count : 0), 0);

  it('fires nothing of a task that is due every minute until it is released, and then applies the release', async () => {
    const [old, backup] = [join(directory(), 'old'), join(directory(), 'backup')];
    const created = Date.now() - 3 * DAY;
    const taskId = await onLog(old, (store) =>
      addTask(store, created, { payload: { pipeline: [{ uses: 'echo', with: {} }] } }),
    );
    const backedUp = await svc(['backup', backup], { env: { SVC_DATA_DIR: old } });
    expect(backedUp.code, backedUp.err).to.equal(0);
    const runsBy: Readonly<Record<MisfirePolicy, number>> = { skip: 0, latest: 1, all: 100 };
    const policies = Object.entries(runsBy) as [MisfirePolicy, number][];
    await Promise.all(policies.map(([policy, runs]) => released(backup, taskId, policy, runs)));
  });

  async function released(
    backup: string,
    taskId: string,
    policy: MisfirePolicy,
    runs: number,
  ): Promise<void> {
    const data = join(directory(), policy);
    const restored = await svcProcess(['restore', backup, '--json'], { SVC_DATA_DIR: data });
    expect(restored.code, restored.err).to.equal(0);
    // The restore created no other files, which a service could mistake for its own.
    expect(readdirSync(data)).to.deep.equal(['events.sqlite']);
    const { owed, hold } = JSON.parse(restored.out) as {
      owed: { fires: number; runs: Record<string, number> };
      hold: { reason: string };
    };
    expect(hold.reason).to.match(/^restored from the backup of 20/);
    expect(owed.fires).to.be.within(DUE_IN_THREE_DAYS, DUE_IN_THREE_DAYS + 2);
    expect(owed.runs).to.include({ own: 1, skip: 0, latest: 1, all: 100 });

    const service = await ServiceProcess.start({ SVC_DATA_DIR: data, SVC_RATE_LIMIT: '0' });
    const client = service.client(await signIn(service.client(), credentialsIn(data)));
    const health = await client.get('/health');
    expect(health.text).to.include('restored from the backup');
    // Manual runs wait as well. Without the hold, the scheduler would have fired the due tasks by now.
    const asked = await client.post(`/tasks/${taskId}/run_now`);
    expect(asked.status, asked.text).to.equal(200);
    const before = Ledger.read(data);
    expect(before.fires(taskId)).to.deep.equal([]);
    expect(before.all('RunStarted')).to.deep.equal([]);

    const release = await svc(['release', `--missed=${policy}`], {
      env: { SVC_URL: service.address, SVC_DATA_DIR: data },
    });
    expect(release.code, release.err).to.equal(0);
    const at = Date.parse(
      Ledger.read(data).all('OperationsReleased')[0]?.metadata.occurredAt ?? '',
    );
    await eventually(
      () => {
        const ledger = Ledger.read(data);
        const ended = ledger.all('RunSucceeded').length;
        expect(ended).to.be.at.least(runs + 1);
        expect(skippedOf(ledger, taskId) + firesOf(ledger, taskId, at).length).to.be.at.least(
          owed.fires,
        );
      },
      { limitMs: 150_000 },
    ).catch(async (error: unknown) => {
      const { text } = await client.get('/health');
      const message = `${policy}: ${String(error)}\n${text}\n${service.output.slice(-4_000)}`;
      throw new Error(message, { cause: error });
    });
    const after = Ledger.read(data);
    expect(firesOf(after, taskId, at)).to.have.lengthOf(runs);
    expect(await service.terminate()).to.deep.equal({ code: 0, signal: null });
  }

  it('is not started from a log with an unfinished import', async () => {
    const [old, out, data] = ['old', 'out', 'data'].map((name) => join(directory(), name)) as [
      string,
      string,
      string,
    ];
    await onLog(old, (store) => addTask(store, Date.now()));
    const exported = await svc(['export', out], { env: { SVC_DATA_DIR: old } });
    expect(exported.code, exported.err).to.equal(0);
    const stop = new AbortController();
    const broken = await svc(['import', out], {
      env: { SVC_DATA_DIR: data },
      terminal: true,
      signal: stop.signal,
      // At the output "checking", everything is written, but the import is not complete.
      written: { send: (text: string) => text.includes('checking') && stop.abort() } as never,
    });
    expect(broken.code, broken.err).to.equal(1);
    const refused = ServiceProcess.begin({ SVC_DATA_DIR: data });
    expect((await refused.ended()).code, refused.output).to.equal(1);
    expect(refused.output).to.include('run the same svc import');
    expect((await svc(['import', out], { env: { SVC_DATA_DIR: data } })).code).to.equal(0);
    await ServiceProcess.start({ SVC_DATA_DIR: data });
  });
});
