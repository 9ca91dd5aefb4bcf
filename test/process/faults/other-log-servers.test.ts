import { expect } from 'chai';
import { join } from 'node:path';
import type { ApiClient } from '../../support/api-client.ts';
import {
  ServiceProcess,
  buildService,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { Servers } from '../servers.ts';

describe('the service on servers, with an older log that has diverged from its views', function () {
  this.timeout(240_000);
  let servers: Servers;
  before(() => buildService());
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  beforeEach(async () => {
    servers = await Servers.start();
  });
  afterEach(() => servers.stop());

  const dataDirectory = (): string => join(directory(), 'data');
  const settings = (): Record<string, string> => ({
    ...servers.settings,
    SVC_DATA_DIR: dataDirectory(),
  });

  const clientOf = async (service: ServiceProcess): Promise<ApiClient> =>
    service.client(await signIn(service.client(), credentialsIn(dataDirectory())));

  async function addTask(client: ApiClient, title: string): Promise<void> {
    const answer = await client.post('/tasks', {
      title,
      description: title,
      schedule_kind: 'event',
      schedule_expr: 'orders',
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

  it('rebuilds them from that log', async () => {
    let service = await ServiceProcess.start(settings());
    let client = await clientOf(service);
    await service.terminate();
    const copy = servers.log.copy();

    service = await ServiceProcess.start(settings());
    client = await clientOf(service);
    for (const title of ['lost 1', 'lost 2']) await addTask(client, title);
    await eventually(async () => (await titlesOf(client)).length === 2);
    await service.terminate();
    const seen = servers.log.all.at(-1)?.prepare ?? 0;

    await servers.putBack(copy);
    service = ServiceProcess.begin({ ...settings(), SVC_ROLES: 'api' });
    await service.listening();
    client = await clientOf(service);
    const titles: string[] = [];
    while ((copy.all.at(-1)?.prepare ?? 0) <= seen) {
      const title = `kept ${String(titles.length).padStart(4, '0')}`;
      await addTask(client, title);
      titles.push(title);
    }
    await service.terminate();

    service = ServiceProcess.begin(settings());
    await service.ready(90_000);
    client = await clientOf(service);
    expect(service.output).to.include('a view was built from another log');
    await eventually(async () => {
      expect(await titlesOf(client)).to.deep.equal(titles);
    });
    const published = await client.post('/events', {
      topic: 'orders',
      payload: {},
      source_agent_id: credentialsIn(dataDirectory()).agent_id,
    });
    expect(published.json, published.text)
      .to.have.nested.property('details.triggered_tasks')
      .with.length(titles.length);
    // The run requester remembers a position too. This log need not have an event there.
    await eventually(
      async () => {
        const { items } = (await client.get('/runs?state=succeeded&limit=200')).json as {
          items: object[];
        };
        return items.length === titles.length;
      },
      { limitMs: 60_000 },
    );
    await service.terminate();
  });
});
