import { expect } from 'chai';
import { Worker, type Job } from '../../../api/worker/worker.ts';
import { OtlpCollector } from '../../support/otlp-collector.ts';
import { buildService, endsItsProcesses } from '../../support/service-process.ts';
import { Signal } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { Cluster, oneProcess } from '../cluster.ts';

describe('the trace of a run', function () {
  this.timeout(120_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  before(() => buildService());

  it('reaches the tool of a worker', async () => {
    const collector = await OtlpCollector.start();
    const cluster = new Cluster(oneProcess, {
      SVC_DATA_DIR: directory(),
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '50',
    });
    await cluster.start();
    const { agent_id: agentId = '', agent_secret: agentSecret = '' } = cluster.credentials ?? {};
    const seen = new Signal<Job>('a job');
    const run = (_args: unknown, job: Job): string => {
      seen.send(job);
      return 'done';
    };
    const worker = new Worker({
      url: cluster.process(0).address,
      agentId,
      agentSecret,
      log: () => {},
      tools: { 'traced.tool': { description: 'is traced', schema: {}, run } },
    });
    try {
      await worker.start();
      const admin = cluster.clientOf(0);
      const task = await admin.post('/tasks', {
        title: 'traced',
        description: 'has a job',
        schedule_kind: 'event',
        schedule_expr: 'never.published',
        created_by: agentId,
        payload: { pipeline: [{ uses: 'traced.tool' }] },
      });
      const ran = await admin.post(`/tasks/${task.textAt('id')}/run_now?wait=30`);
      expect(ran.at('details.run.state'), ran.text).to.equal('succeeded');
      const { traceparent } = await seen.wait();
      const first = await collector.descended([
        'POST /tasks/{id}/run_now',
        'command POST /tasks/{id}/run_now',
        'run',
      ]);
      expect(traceparent).to.equal(`00-${first.traceId}-${first.spanId}-01`);
      expect(await cluster.terminate()).to.deep.equal([0]);
    } finally {
      await worker.stop();
      await collector.close();
    }
  });
});
