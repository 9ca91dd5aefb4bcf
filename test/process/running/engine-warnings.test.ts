import { expect } from 'chai';
import { join } from 'node:path';
import {
  ServiceProcess,
  buildService,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { svcProcess } from '../svc-process.ts';

/** Also warns of features that a later version of Node will remove. */
const NODE_OPTIONS = '--pending-deprecation --trace-warnings';

describe(`Node ${process.versions.node}`, function () {
  this.timeout(120_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  before(() => buildService());

  it('warns about nothing in the service, and knows all set options', async () => {
    const data = join(directory(), 'data');
    const service = await ServiceProcess.start({
      SVC_DATA_DIR: data,
      SVC_HTTP_ALLOW_PRIVATE: 'true',
      NODE_OPTIONS,
    });
    const credentials = credentialsIn(data);
    const client = service.client(await signIn(service.client(), credentials));
    const url = `${service.address}/health/live`;
    const made = await client.post('/tasks', {
      title: 'Asks',
      description: 'by HTTP',
      created_by: credentials.agent_id,
      schedule_kind: 'cron',
      schedule_expr: '* * * * * *',
      payload: { pipeline: [{ uses: 'http.request', with: { url } }] },
    });
    expect(made.status, made.text).to.equal(201);
    await eventually(async () => {
      const answer = await client.get('/runs?state=succeeded');
      if (answer.at('total') === 0) throw new Error(answer.text);
    });
    for (const path of ['/openapi.json', '/docs', '/ext/webui/', '/ext/observability/metrics']) {
      expect((await client.get(path)).status, path).to.equal(200);
    }
    const env = { SVC_DATA_DIR: data, NODE_OPTIONS };
    const exported = await svcProcess(['export', '--format', 'ndjson'], env);
    expect(exported.code).to.equal(0);
    expect(exported.err).to.match(/^exporting\n\d+ events\n$/);
    expect(await service.terminate()).to.deep.equal({ code: 0, signal: null });
    // Lines like "(node:7) [DEP0040] DeprecationWarning: …" and "Error: unrecognized flag --…".
    const lines = service.output.split('\n').filter((line) => /^\(|^Error|^\s+at /.test(line));
    expect(lines).to.deep.equal([]);
  });
});
