import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ReceivedResponse } from '../../support/api-client.ts';
import {
  ServiceProcess,
  buildService,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually, found } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { faultsOfFires, type SecondsTask } from '../../support/expected-fires.ts';
import { damagedFiles } from './damaged-files.ts';
import { Ledger } from '../ledger.ts';
import { faultsOfCauses, faultsOfStreams } from '../log-checks.ts';
import { mountSmallDisk, type SmallDisk } from './small-disk.ts';
import { faultsOfViews } from '../view-checks.ts';
import { requiredProgram } from '../../support/required-program.ts';

/** Describes the task that fires throughout. Each delayed fire still runs. */
const everySecond: Omit<SecondsTask, 'createdAt'> = {
  isDue: () => true,
  misfire: 'all',
  graceSeconds: 60,
};

describe('the service on a full disk', function () {
  this.timeout(90_000);
  let disk: SmallDisk | null = null;
  // In this order: running processes keep the disk busy, and the mount keeps the folder.
  endsItsProcesses();
  afterEach(() => {
    disk?.remove();
    disk = null;
  });
  const directory = useTemporaryDirectory();
  before(() => buildService());

  it('returns 503 for commands it cannot write, and recovers when there is space', async function () {
    const data = join(directory(), 'data');
    mkdirSync(data);
    disk = mountSmallDisk(this, data);
    const { fill, empty } = disk;
    await outlivesAFullDisk(data, { full: () => fill(), room: () => empty() });
  });

  it('does not start on a full disk, says so in one line, and starts when there is space', async function () {
    const data = join(directory(), 'data');
    mkdirSync(data);
    disk = mountSmallDisk(this, data);
    disk.fill();
    const refused = ServiceProcess.begin({ SVC_DATA_DIR: data });
    expect((await refused.ended()).code, refused.output).to.equal(1);
    const lines = refused.output.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
    expect(lines, refused.output).to.have.lengthOf(1);
    expect(lines[0])
      .to.include(data)
      .and.to.match(/full|no space/i);
    disk.empty();
    const service = await ServiceProcess.start({ SVC_DATA_DIR: data });
    await signIn(service.client(), credentialsIn(data));
  });

  it('returns 503 when files may not grow, and recovers when they may', async function () {
    const data = join(directory(), 'data');
    const limit = ({ pid }: ServiceProcess, bytes: string): boolean =>
      spawnSync(prlimit, [`--pid=${pid}`, `--fsize=${bytes}:unlimited`]).status === 0;
    const prlimit = requiredProgram(this, 'prlimit');
    await outlivesAFullDisk(data, {
      full: (service) => expect(limit(service, '4096')).to.equal(true),
      room: (service) => expect(limit(service, 'unlimited')).to.equal(true),
    });
  });
});

async function outlivesAFullDisk(
  data: string,
  disk: {
    readonly full: (service: ServiceProcess) => unknown;
    readonly room: (service: ServiceProcess) => unknown;
  },
): Promise<void> {
  const service = await ServiceProcess.start({ SVC_DATA_DIR: data, SVC_LEASE_SECONDS: '1' });
  const credentials = credentialsIn(data);
  const client = service.client(await signIn(service.client(), credentials));
  const publish = (marker: string): Promise<ReceivedResponse> =>
    client.post('/events', {
      topic: 'disk',
      payload: { marker, filling: 'x'.repeat(10_000) },
      source_agent_id: credentials.agent_id,
    });
  const created = await client.post('/tasks', {
    title: 'every second',
    description: 'goes on',
    schedule_kind: 'cron',
    schedule_expr: '* * * * * *',
    created_by: credentials.agent_id,
    misfire_policy: 'all',
    payload: { pipeline: [{ uses: 'echo', with: { said: 'here' } }] },
  });
  expect(created.status, created.text).to.equal(201);
  const taskId = created.textAt('id');
  const createdAt = Date.parse(created.textAt('created_at'));
  await eventually(() => Ledger.read(data).all('Fired').length > 0);
  // Also in the view: a full disk prevents its updates.
  await eventually(async () => (await client.get(`/tasks/${taskId}`)).status === 200);

  disk.full(service);
  const refused = await found(
    async () => {
      const answer = await publish('while it is full');
      return answer.status === 202 ? undefined : answer;
    },
    { what: 'an event to be refused' },
  );
  expect(refused.status, refused.text).to.equal(503);
  expect(refused.at('error')).to.equal('unavailable');
  expect(refused.at('details.component')).to.equal('stream_store');
  // The log line is written separately.
  await eventually(() => service.output.includes(join(data, 'events.sqlite')));
  // Existing data can still be read.
  const read = await client.get(`/tasks/${taskId}`);
  expect(read.status, read.text).to.equal(200);
  const alive = await client.get('/health/live');
  expect(alive.status).to.equal(200);
  const lastWhileFull = Ledger.read(data).all('EventPublished').length;

  disk.room(service);
  const marker = 'when there is room again';
  await eventually(async () => (await publish(marker)).status === 202, { limitMs: 20_000 });
  const roomAt = Date.now();
  await eventually(
    () => {
      const runs = Ledger.read(data).runs();
      const last = runs.filter(({ end }) => end?.type === 'RunSucceeded').at(-1);
      return Date.parse(last?.request.data.scheduled_for ?? '') > roomAt + 1000;
    },
    { limitMs: 30_000, what: 'the task to run again' },
  );
  expect(await service.terminate()).to.deep.equal({ code: 0, signal: null });

  const ledger = Ledger.read(data);
  const published = ledger.all('EventPublished');
  expect(published).to.have.lengthOf(lastWhileFull + 1);
  expect(published.at(-1)?.data.payload['marker']).to.equal(marker);
  const faults = [
    ...faultsOfStreams(ledger),
    ...faultsOfCauses(ledger),
    ...faultsOfFires({ ...everySecond, createdAt }, ledger.fires(taskId)),
    ...(await faultsOfViews(data)),
    ...damagedFiles(data),
  ];
  expect(faults.join('\n')).to.equal('');
}
