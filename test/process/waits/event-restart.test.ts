import { expect } from 'chai';
import type { ApiClient } from '../../support/api-client.ts';
import {
  buildService,
  credentialsIn,
  endsItsProcesses,
  ServiceProcess,
  signIn,
} from '../../support/service-process.ts';
import { found } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

/** Seconds before the step starts to wait. */
const SLEEP_SECONDS = 3;

describe('a step that waits for events since its run was requested', function () {
  this.timeout(120_000);
  endsItsProcesses();
  before(() => buildService());
  const directory = useTemporaryDirectory();

  const start = async (): Promise<readonly [ServiceProcess, ApiClient]> => {
    const settings = { SVC_DATA_DIR: directory(), SVC_LEASE_SECONDS: '1' };
    const service = await ServiceProcess.start(settings);
    const client = service.client();
    return [service, client.as(await signIn(client, credentialsIn(directory())))];
  };

  for (const topic of ['orders.paid', 'orders.*']) {
    it(`counts an event on ${topic} from before it started to wait and before a restart`, async () => {
      const [first, client] = await start();
      const { agent_id } = credentialsIn(directory());
      const made = await client.post('/tasks', {
        title: 'waits',
        description: 'for an event',
        schedule_kind: 'event',
        schedule_expr: 'never.published',
        created_by: agent_id,
        payload: {
          pipeline: [
            { id: 'nap', uses: 'sleep', with: { seconds: SLEEP_SECONDS } },
            { id: 'paid', uses: 'wait.event', with: { topic, since: 'run', timeout_seconds: 60 } },
          ],
        },
      });
      expect(made.status, made.text).to.equal(201);
      const publish = async (n: number): Promise<void> => {
        const event = { topic: 'orders.paid', payload: { n }, source_agent_id: agent_id };
        expect((await client.post('/events', event)).status).to.equal(202);
      };
      await publish(0);
      const requested = await client.post(`/tasks/${made.textAt('id')}/run_now`);
      const runId = requested.textAt('details.run_id');
      await publish(1);
      await publish(2);
      const before = await client.get(`/runs/${runId}`);
      expect(before.at('plan.1.state'), before.text).to.equal('pending');
      await first.kill();
      const [, again] = await start();
      const ended = await found(
        async () => {
          const run = await again.get(`/runs/${runId}`);
          return typeof run.at('finished_at') === 'string' ? run : undefined;
        },
        { what: 'the run to end', limitMs: 30_000 },
      );
      expect(ended.at('output.steps.paid.payload'), ended.text).to.deep.equal({ n: 1 });
    });
  }
});
