import { expect } from 'chai';
import type { ApiClient } from '../../support/api-client.ts';
import { S3Server } from '../../support/s3-server.ts';
import {
  buildService,
  credentialsIn,
  endsItsProcesses,
  ServiceProcess,
  signIn,
} from '../../support/service-process.ts';
import { deferred, found } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('a service that keeps large results in S3', function () {
  this.timeout(120_000);
  endsItsProcesses();
  before(() => buildService());
  const directory = useTemporaryDirectory();
  let server: S3Server;
  let client: ApiClient;

  beforeEach(async () => {
    server = await S3Server.start();
  });
  afterEach(() => server.close());

  async function start(): Promise<ServiceProcess> {
    const { bucket, region, url, credentials } = server;
    const service = await ServiceProcess.start({
      SVC_DATA_DIR: directory(),
      SVC_LEASE_SECONDS: '2',
      SVC_ARTIFACTS_S3_BUCKET: bucket,
      SVC_ARTIFACTS_S3_REGION: region,
      SVC_ARTIFACTS_S3_ENDPOINT: url,
      SVC_ARTIFACTS_S3_KEY_ID: credentials.keyId,
      SVC_ARTIFACTS_S3_SECRET: credentials.secret,
    });
    client = service.client();
    client = client.as(await signIn(client, credentialsIn(directory())));
    return service;
  }

  async function request(): Promise<string> {
    const task = await client.post('/tasks', {
      title: 'rows',
      description: 'rows',
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      created_by: credentialsIn(directory()).agent_id,
      payload: {
        params: { text: 'x'.repeat(200_000) },
        pipeline: [{ id: 'big', uses: 'echo', with: ['${params.text}', '${params.text}'] }],
      },
    });
    expect(task.status, task.text).to.equal(201);
    return (await client.post(`/tasks/${task.textAt('id')}/run_now`)).textAt('details.run_id');
  }

  it('and is killed between the artifact and its event, ends with one artifact', async () => {
    const first = await start();
    const written = deferred();
    server.fault = (asked) => {
      if (!asked.startsWith('PUT')) return null;
      server.fault = () => null;
      setImmediate(() => written.resolve());
      return 'lost';
    };
    const run = await request();
    await written.promise;
    await first.kill();
    expect(server.objects.size).to.equal(1);
    await start();
    const ended = await found(
      async () => {
        const shown = await client.get(`/runs/${run}`);
        return typeof shown.at('finished_at') === 'string' ? shown : undefined;
      },
      { limitMs: 60_000, what: 'the run to end' },
    );
    expect(ended.at('state'), ended.text).to.equal('succeeded');
    const artifact = ended.textAt('output.steps.big.artifact');
    expect([...server.objects.keys()]).to.deep.equal([`artifacts/${run}/${artifact}.json`]);
    const content = await client.get(`/runs/${run}/artifacts/${artifact}`);
    expect(content.list).to.deep.equal(['x'.repeat(200_000), 'x'.repeat(200_000)]);
  });
});
