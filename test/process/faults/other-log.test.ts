import { expect } from 'chai';
import { copyFileSync, cpSync, mkdirSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiClient } from '../../support/api-client.ts';
import {
  ServiceProcess,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import {
  makeTemporaryDirectory,
  useTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { Ledger } from '../ledger.ts';

const LOG = 'events.sqlite';

/** The due time of a task that must not fire. */
const LATER = '2099-01-01T00:00:00Z';

describe('the service with an older log beside its views', function () {
  this.timeout(120_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  /** The files of a service that has run before. */
  let used: TemporaryDirectory;

  before(async () => {
    used = await makeTemporaryDirectory();
    const service = await ServiceProcess.start({ SVC_DATA_DIR: used.path });
    await service.terminate();
  });
  after(() => used.remove());
  beforeEach(() => cpSync(used.path, dataDirectory(), { recursive: true }));

  const dataDirectory = (): string => join(directory(), 'data');

  const start = (): Promise<ServiceProcess> =>
    ServiceProcess.start({ SVC_DATA_DIR: dataDirectory() });

  async function clientOf(service: ServiceProcess): Promise<ApiClient> {
    const client = service.client();
    return service.client(await signIn(client, credentialsIn(dataDirectory())));
  }

  async function addTask(
    client: ApiClient,
    title: string,
    schedule_kind = 'cron',
    schedule_expr = '* * * * * *',
  ): Promise<void> {
    const answer = await client.post('/tasks', {
      title,
      description: title,
      schedule_kind,
      schedule_expr,
      timezone: 'UTC',
      payload: { pipeline: [{ id: 'a', uses: 'echo', with: {} }] },
      created_by: credentialsIn(dataDirectory()).agent_id,
    });
    expect(answer.status, JSON.stringify(answer.json)).to.equal(201);
  }

  const titlesOf = async (client: ApiClient): Promise<readonly string[]> => {
    const { items } = (await client.get('/tasks?limit=200')).json as { items: { title: string }[] };
    return items.map(({ title }) => title).sort();
  };

  /** Replaces the existing log with another one. */
  function putBack(copy: string): void {
    for (const name of readdirSync(dataDirectory())) {
      if (name.startsWith(LOG)) rmSync(join(dataDirectory(), name));
    }
    copyFileSync(copy, join(dataDirectory(), LOG));
  }

  it('rebuilds them, and fires nothing because of them', async () => {
    const copy = join(directory(), 'copy');
    copyFileSync(join(dataDirectory(), LOG), copy);

    let service = await start();
    let client = await clientOf(service);
    await addTask(client, 'lost');
    await eventually(async () => {
      const { items } = (await client.get('/runs?state=succeeded')).json as { items: object[] };
      expect(items).to.have.length.greaterThan(2);
    });
    await service.terminate();

    putBack(copy);
    service = await start();
    client = await clientOf(service);
    expect(await titlesOf(client)).to.deep.equal([]);
    await addTask(client, 'kept');
    await eventually(async () => {
      expect(await titlesOf(client)).to.deep.equal(['kept']);
      const { items } = (await client.get('/runs?state=succeeded')).json as { items: object[] };
      expect(items).to.have.length.greaterThan(0);
    });
    await service.terminate();
    const { streams } = Ledger.read(dataDirectory());
    const [task = '', ...others] = [...streams.keys()].filter((name) => name.startsWith('task-'));
    expect(others).to.deep.equal([]);
    const fires = [...streams.keys()].filter((name) => name.startsWith('fires-'));
    expect(fires).to.deep.equal([task.replace('task-', 'fires-')]);
  });

  it('rebuilds them if the copy has diverged beyond their last event', async () => {
    const elsewhere = join(directory(), 'elsewhere');
    mkdirSync(elsewhere);
    copyFileSync(join(dataDirectory(), LOG), join(elsewhere, LOG));

    let service = await start();
    let client = await clientOf(service);
    for (const title of ['lost 1', 'lost 2']) await addTask(client, title, 'once', LATER);
    await eventually(async () => (await titlesOf(client)).length === 2);
    await service.terminate();
    const seen = Ledger.read(dataDirectory()).events.length;

    service = await ServiceProcess.start({ SVC_DATA_DIR: elsewhere });
    client = await clientOf(service);
    const titles: string[] = [];
    while (titles.length <= seen) {
      const title = `kept ${String(titles.length).padStart(4, '0')}`;
      await addTask(client, title, 'once', LATER);
      titles.push(title);
    }
    await service.terminate();

    putBack(join(elsewhere, LOG));
    service = await start();
    client = await clientOf(service);
    await eventually(async () => {
      expect(await titlesOf(client)).to.deep.equal(titles);
    });
    expect(service.output).to.include('a view was built from another log');
    await service.terminate();
  });

  it('does not start an empty log beside them', async () => {
    for (const name of readdirSync(dataDirectory())) {
      if (name.startsWith(`${LOG}-`)) rmSync(join(dataDirectory(), name));
    }
    truncateSync(join(dataDirectory(), LOG), 0);
    const before = readdirSync(dataDirectory()).filter((name) => /-g\d+\.db$/.test(name));
    const again = ServiceProcess.begin({ SVC_DATA_DIR: dataDirectory() });
    expect((await again.ended()).code).to.equal(1);
    const lines = again.output.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
    expect(lines).to.have.length(1);
    expect(lines[0]).to.match(/^the event log is empty, but the view \w+ is not: /);
    const after = readdirSync(dataDirectory()).filter((name) => /-g\d+\.db$/.test(name));
    expect(after).to.deep.equal(before);
  });
});
