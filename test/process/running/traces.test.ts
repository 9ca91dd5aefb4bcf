import { expect } from 'chai';
import { join } from 'node:path';
import { Receiver } from '../../scheduler/webhooks/webhook-harness.ts';
import { OtlpCollector, type CollectedSpan } from '../../support/otlp-collector.ts';
import { buildService, endsItsProcesses } from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { Cluster, oneProcess } from '../cluster.ts';

const secret = 'a secret that nobody may read';
const callersTrace = '4bf92f3577b34da6a3ce929d0e0e4736';

describe('traces', function () {
  this.timeout(120_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  let collector: OtlpCollector;
  let receiver: Receiver;
  let url: string;
  before(() => buildService());
  beforeEach(async () => {
    collector = await OtlpCollector.start();
    receiver = new Receiver();
    url = await receiver.listen();
  });
  afterEach(async () => {
    await collector.close();
    await receiver.close();
  });

  async function start(
    roles: readonly string[],
    settings: Readonly<Record<string, string>> = {},
  ): Promise<Cluster> {
    const cluster = new Cluster(roles, {
      SVC_DATA_DIR: join(directory(), roles.join()),
      SVC_SECRET_PASS: secret,
      SVC_SECRET_HOSTS: 'PASS=*',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-key=of%20the%20collector',
      OTEL_BSP_SCHEDULE_DELAY: '50',
      OTEL_SERVICE_NAME: 'scheduling',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      ...settings,
    });
    await cluster.start();
    return cluster;
  }

  /** Creates an agent with a webhook, and a task for it that calls a server. */
  async function playFire(cluster: Cluster, schedule: object): Promise<string> {
    const admin = cluster.clientOf(0);
    const agent = await admin.post('/agents', {
      name: `of ${JSON.stringify(schedule)}`,
      scopes: ['tasks'],
      webhook_url: `${url}?token=of-the-webhook`,
    });
    expect(agent.status, agent.text).to.equal(201);
    const created = await admin.post(
      '/tasks',
      {
        title: 'traced',
        description: 'calls a server',
        ...schedule,
        created_by: agent.textAt('id'),
        payload: {
          pipeline: [
            { id: 'say', uses: 'echo', with: { value: 1 } },
            {
              id: 'call',
              uses: 'http.request',
              with: {
                url: `${url.replace('/hook', '/step')}?token=of-the-step`,
                headers: { authorization: '${secrets.PASS}' },
              },
            },
          ],
        },
      },
      { headers: { traceparent: `00-${callersTrace}-00f067aa0ba902b7-01` } },
    );
    expect(created.status, created.text).to.equal(201);
    return created.textAt('id');
  }

  async function checkFire(id: string): Promise<CollectedSpan> {
    const sent = (path: string) => receiver.all.find((each) => each.path.startsWith(path));
    const hooked = await collector.descended([
      '?', // the caller's own, which the collector has not received
      'POST /tasks',
      'command POST /tasks',
      'fire',
      'run',
      'deliver webhook',
      'POST',
    ]);
    expect(hooked.kind).to.equal('client');
    expect(hooked.traceId).to.equal(callersTrace);
    expect(sent('/hook')?.headers['traceparent']).to.equal(
      `00-${hooked.traceId}-${hooked.spanId}-01`,
    );
    const ofTrace = (name: string) =>
      collector.span(name, (span) => span.name === name && span.traceId === callersTrace);
    const run = await ofTrace('run');
    expect(run.attributes).to.include({ 'svc.task.id': id, 'svc.run.outcome': 'RunSucceeded' });
    expect(run.kind).to.equal('consumer');
    const echo = await ofTrace('step echo');
    expect(echo.parentSpanId).to.equal(run.spanId);
    const called = await ofTrace('GET');
    expect(collector.lineage(called).slice(-3)).to.deep.equal(['run', 'step http.request', 'GET']);
    expect(called.attributes).to.include({ 'http.response.status_code': 204 });
    expect(sent('/step')?.headers['traceparent']).to.equal(
      `00-${called.traceId}-${called.spanId}-01`,
    );
    const server = await ofTrace('POST /tasks');
    expect(server.attributes).to.include({
      'http.request.method': 'POST',
      'http.route': '/tasks',
      'url.path': '/tasks',
      'http.response.status_code': 201,
    });
    expect(server.resource).to.include({
      'service.name': 'scheduling',
      'deployment.environment.name': 'test',
    });
    const appends = collector.spans.filter(
      ({ name, traceId }) => name.startsWith('append ') && traceId === callersTrace,
    );
    const parents = appends.map((span) => collector.lineage(span).at(-2));
    expect(parents).to.include.members(['command POST /tasks', 'fire', 'run', 'deliver webhook']);
    return run;
  }

  /** All triggers except a fire. */
  async function checkOthers(cluster: Cluster, id: string): Promise<void> {
    const admin = cluster.clientOf(0);
    const { credentials } = cluster;
    expect((await admin.get('/health')).status).to.equal(200);

    const refused = await admin.post(`/tasks/${credentials?.agent_id}/run_now`);
    expect(refused.status, refused.text).to.equal(404);
    const command = await collector.span(
      'of the refusal',
      ({ attributes }) => attributes['svc.refusal'] === 'not_found',
    );
    expect([command.failed, command.attributes['svc.agent.id']]).to.deep.equal([
      false,
      credentials?.agent_id,
    ]);

    // Each run of a backfill is a trace linked to the command, because there may be thousands.
    const to = Math.floor(Date.now() / 1000) * 1000 - 10_000;
    const filled = await admin.post(`/tasks/${id}/backfill`, {
      from: new Date(to - 2_000).toISOString(),
      to: new Date(to).toISOString(),
    });
    expect(filled.status, filled.text).to.equal(202);
    const asked = await collector.span(
      'of the backfill',
      ({ name }) => name.startsWith('command') && name.endsWith('/backfill'),
    );
    const run = await collector.span(
      'of a run of it',
      ({ attributes }) => attributes['svc.run.trigger'] === 'backfill',
    );
    expect([run.parentSpanId, run.links]).to.deep.equal([
      '',
      [{ traceId: asked.traceId, spanId: asked.spanId }],
    ]);

    // An extension asks the service for its caller: within the caller's request.
    const invoked = await admin.post('/ext/mcp_http/invoke', {
      tool: 'pause_task',
      parameters: { task_id: id },
    });
    expect(invoked.status, invoked.text).to.equal(200);
    await collector.descended([
      'POST /ext/mcp_http/invoke',
      'POST /tasks/{id}/pause',
      'command POST /tasks/{id}/pause',
    ]);

    const ofHealth = collector.spans.filter(
      ({ attributes }) => attributes['url.path'] === '/health',
    );
    expect(ofHealth).to.deep.equal([]);
  }

  it('lead from a command over its fire, the run and its steps to the webhook', async () => {
    const cluster = await start(oneProcess);
    const run = await checkFire(await playFire(cluster, soon()));
    // A batch of a view belongs to many traces: it is linked to them, and part of none.
    const batch = await collector.span(
      'of a view',
      ({ name, links }) =>
        name === 'project runs' && links.some(({ traceId }) => traceId === run.traceId),
    );
    expect([batch.parentSpanId, batch.traceId === run.traceId]).to.deep.equal(['', false]);
    const [first] = collector.requests;
    expect(first?.path).to.equal('/v1/traces');
    expect(first?.headers['x-collector-key']).to.equal('of the collector');
    // An unlimited schedule is not one trace: each further fire starts its own.
    const id = await playFire(cluster, { schedule_kind: 'cron', schedule_expr: '* * * * * *' });
    const fires = (): readonly CollectedSpan[] =>
      collector.spans.filter(
        ({ name, attributes }) => name === 'fire' && attributes['svc.task.id'] === id,
      );
    await eventually(() => fires().length >= 2, { limitMs: 20_000 });
    const [fire, next] = fires();
    expect([fire?.traceId, fire?.links]).to.deep.equal([callersTrace, []]);
    expect([next?.parentSpanId, next?.traceId === callersTrace]).to.deep.equal(['', false]);
    expect(next?.links.map(({ traceId }) => traceId)).to.deep.equal([callersTrace]);
    await checkOthers(cluster, id);
    expect(await cluster.terminate()).to.deep.equal([0]);
    for (const hidden of [secret, 'of-the-webhook', 'of-the-step', 'Bearer', 'eyJhbGciOi']) {
      expect(collector.raw.includes(hidden), hidden).to.equal(false);
    }
  });

  it('span the processes that share the work, even if one of them dies', async () => {
    const cluster = await start(['api,scheduler', 'projector,worker']);
    const done = await checkFire(await playFire(cluster, soon()));
    const fire = await collector.span('of the fire', ({ name }) => name === 'fire');
    expect(fire.resource['process.pid']).to.not.equal(done.resource['process.pid']);

    const held = receiver.all.length;
    receiver.answer = () => {};
    const id = await playFire(cluster, { schedule_kind: 'event', schedule_expr: 'go' });
    const asked = await cluster.clientOf(0).post(`/tasks/${id}/run_now`);
    expect(asked.status, asked.text).to.equal(200);
    await eventually(() => receiver.all.length > held, { limitMs: 20_000 });
    await cluster.kill([1]);
    receiver.answer = (response) => response.writeHead(500).end('no');
    await cluster.restart([1]);
    const run = await collector.descended([
      'POST /tasks/{id}/run_now',
      'command POST /tasks/{id}/run_now',
      'run',
    ]);
    expect([run.failed, run.attributes['svc.run.outcome']]).to.deep.equal([
      true,
      'RunAttemptFailed',
    ]);
    expect(run.message).to.match(/answered 500/);
    const step = await collector.span(
      'of the step',
      ({ name, parentSpanId }) => name === 'step http.request' && parentSpanId === run.spanId,
    );
    expect(step.failed).to.equal(true);
    expect(await cluster.terminate()).to.deep.equal([0, 0]);
  });

  it('delay nothing when the collector does not respond or is unavailable', async () => {
    collector.answer = () => {};
    const cluster = await start(oneProcess, { OTEL_EXPORTER_OTLP_TIMEOUT: '500' });
    const id = await playFire(cluster, { schedule_kind: 'event', schedule_expr: 'go' });
    for (const step of ['silent', 'away']) {
      if (step === 'away') await collector.close();
      const ran = await cluster.clientOf(0).post(`/tasks/${id}/run_now?wait=20`);
      expect(ran.at('details.run.state'), ran.text).to.equal('succeeded');
    }
    expect(await cluster.terminate()).to.deep.equal([0]);
    expect(cluster.output).to.match(/could not send traces/);
  });
});

/** A one-time schedule, late enough that its task exists before it on a busy machine too. */
function soon(): object {
  const at = new Date(Date.now() + 6_000).toISOString();
  return { schedule_kind: 'once', schedule_expr: at };
}
