import { expect } from 'chai';
import type { RecordedEvent } from '../../../domain/event-store.ts';
import {
  repeatWebhookCommand,
  testWebhookCommand,
} from '../../../domain/webhooks/webhook-commands.ts';
import { DELIVERY_LIFETIME } from '../../../domain/webhooks/webhook.ts';
import { agentsProjection } from '../../../projections/views/agents.ts';
import { webhooksProjection } from '../../../projections/views/webhooks.ts';
import { eventually } from '../../support/signals.ts';
import { World } from '../scheduler-world.ts';
import {
  append,
  endRun,
  Receiver,
  registerAgent,
  retryOf,
  secretOfTest,
  VerifierWithoutTime,
  versionsThatFit,
  WebhookProcess,
} from './webhook-harness.ts';

describe('webhooks', () => {
  let world: World;
  let receiver: Receiver;
  let url: string;
  let processes: WebhookProcess[];

  beforeEach(async () => {
    world = await World.open();
    receiver = new Receiver();
    url = await receiver.listen();
    processes = [];
  });

  afterEach(async () => {
    for (const process of processes) await process.stop();
    await receiver.close();
    await world.close();
  });

  const start = async (
    name = 'one',
    options: { readonly allowPrivate?: boolean; readonly lead?: string } = {},
  ): Promise<WebhookProcess> => {
    const process = new WebhookProcess(world, name, options);
    processes.push(process);
    await process.followed.wait();
    return process;
  };

  /** An agent with a webhook, and a task of its own. */
  const ownerAndTask = async (): Promise<void> => {
    await registerAgent(world, 'owner', url);
    await world.createTask('t', { created_by: 'owner' });
  };

  const deliveries = (): Promise<readonly RecordedEvent[]> => world.events('webhook-');
  const types = async (): Promise<readonly string[]> =>
    (await deliveries()).map(({ type }) => type);
  /** Waits until the deliveries have this many events. */
  const until = (count: number): Promise<void> =>
    eventually(async () => {
      expect(await types()).to.have.length(count);
    });
  /** When the last failed attempt is retried. */
  const retryAt = async (): Promise<number> => retryOf((await deliveries()).at(-1));

  it('notify the owner of a task of the ends of its runs, signed', async () => {
    await start();
    await ownerAndTask();
    await endRun(world, 't', 'r1');
    await endRun(world, 't', 'r2', 'failed');
    await until(4);
    expect([...(await types())].sort()).to.deep.equal([
      'WebhookDelivered',
      'WebhookDelivered',
      'WebhookScheduled',
      'WebhookScheduled',
    ]);
    const verifier = new VerifierWithoutTime(secretOfTest('owner', 0));
    const messages = receiver.all.map(({ body, headers }) => {
      const plain = headers as Record<string, string>;
      return verifier.verify(body, plain) as { type: string; data: Record<string, unknown> };
    });
    expect(messages.map(({ type }) => type)).to.have.members(['run.succeeded', 'run.failed']);
    const failed = messages.find(({ type }) => type === 'run.failed');
    expect(failed?.data).to.include({ run_id: 'r2', task_id: 't' });
    expect(failed?.data['error']).to.be.a('string');
    const [first] = receiver.all;
    expect(first?.path).to.equal('/hook');
    expect(first?.headers['content-type']).to.equal('application/json');
  });

  it('notify of a task paused by failures, but not by a person', async () => {
    await start();
    await ownerAndTask();
    await append(world, 'task-t', { type: 'TaskPaused', data: { by_failures: false } });
    await append(world, 'task-t', { type: 'TaskPaused', data: { by_failures: true } });
    await until(2);
    expect(JSON.parse(receiver.all[0]?.body ?? '')).to.deep.include({ type: 'task.paused' });
    expect(receiver.all).to.have.length(1);
  });

  it('notify no other agent, and of nothing before the URL was set', async () => {
    await registerAgent(world, 'other', null);
    await registerAgent(world, 'owner', null);
    await world.createTask('t', { created_by: 'owner' });
    await world.createTask('o', { created_by: 'other' });
    await endRun(world, 't', 'before');
    await start();
    await append(world, 'agent-owner', {
      type: 'AgentUpdated',
      data: { changes: { webhook_url: url } },
    });
    await endRun(world, 'o', 'r1');
    await endRun(world, 'gone', 'r2');
    await endRun(world, 't', 'r3');
    await until(2);
    expect(receiver.all.map(({ body }) => body).join()).to.contain('"r3"');
  });

  it('do not follow runs while no agent has a URL', async () => {
    const one = await start();
    expect(one.followed.values.at(-1)).to.deep.equal(['agent-', 'webhook-']);
    await ownerAndTask();
    await one.followed.wait((prefixes) => prefixes.includes('run-'));
    const followed = one.followed.next((prefixes) => !prefixes.includes('run-'));
    await append(world, 'agent-owner', { type: 'AgentRemoved', data: {} });
    await followed;
  });

  it('send nothing that is older than a day', async () => {
    await ownerAndTask();
    await endRun(world, 't', 'old');
    world.clock.jumpTo(world.clock.now() + DELIVERY_LIFETIME + 1);
    await endRun(world, 't', 'new');
    await start();
    await until(2);
    expect(receiver.all.map(({ body }) => body).join()).to.contain('"new"');
  });

  it('are retried after 500 with growing pauses, as the same message', async () => {
    receiver.answer = (response) => response.writeHead(500).end('out of order');
    const one = await start();
    await ownerAndTask();
    await endRun(world, 't', 'r');
    await until(2);
    const first = await retryAt();
    world.clock.jumpTo(first);
    await until(3);
    const second = await retryAt();
    expect(second - first).to.be.at.least(30_000);
    receiver.answer = (response) => response.writeHead(200).end('ok');
    world.clock.jumpTo(second);
    await until(4);
    const events = await deliveries();
    expect(events[1]?.data).to.include({ status: 500, answer: 'out of order', attempt: 1 });
    expect(events[3]?.data).to.include({ status: 200, answer: 'ok', attempt: 3 });
    expect(new Set(receiver.all.map(({ body }) => body)).size).to.equal(1);
    expect(new Set(receiver.all.map(({ headers }) => headers['webhook-id'])).size).to.equal(1);
    const times = receiver.all.map(({ headers }) => headers['webhook-timestamp']);
    expect(new Set(times).size).to.equal(3);
    await eventually(() => {
      expect(one.counted).to.deep.equal([
        'webhook_deliveries_total retried',
        'webhook_deliveries_total retried',
        'webhook_deliveries_total delivered',
      ]);
    });
    expect(one.webhooks.deliveries.size).to.equal(0);
  });

  it('wait as long as the receiver asks for', async () => {
    receiver.answer = (response) => response.writeHead(429, { 'retry-after': '3600' }).end();
    await start();
    await ownerAndTask();
    await endRun(world, 't', 'r');
    await until(2);
    expect((await retryAt()) - world.clock.now()).to.equal(3_600_000);
  });

  it("end with 410, which removes the agent's URL", async () => {
    receiver.answer = (response) => response.writeHead(410).end();
    await start();
    await ownerAndTask();
    await endRun(world, 't', 'r');
    await until(2);
    expect((await deliveries())[1]?.data).to.include({ status: 410, end: 'gone', retry_at: null });
    await eventually(async () => {
      const last = (await world.events('agent-owner')).at(-1);
      expect(last?.data).to.deep.equal({ changes: { webhook_url: null } });
      expect(last?.metadata).to.include({ actor: 'service' });
    });
  });

  it('do not follow a redirect', async () => {
    receiver.answer = (response) => response.writeHead(302, { location: '/elsewhere' }).end();
    await start();
    await ownerAndTask();
    await endRun(world, 't', 'r');
    await until(2);
    expect((await deliveries())[1]?.data).to.include({ status: 302, end: null });
    expect(receiver.all.map(({ path }) => path)).to.deep.equal(['/hook']);
  });

  it('wait 15 s for a slow receiver, and keep the beginning of a long response', async () => {
    receiver.answer = () => {};
    await start();
    await ownerAndTask();
    await endRun(world, 't', 'r');
    await receiver.received.wait();
    world.clock.jumpTo(world.clock.now() + 15_000);
    await until(2);
    const [, failed] = await deliveries();
    expect(failed?.data).to.include({ status: null, error: 'no answer within 15 s' });
    expect(failed?.data).to.include({ took_ms: 15_000 });
    receiver.answer = (response) => response.writeHead(200).end('x'.repeat(100_000));
    world.clock.jumpTo(await retryAt());
    await until(3);
    expect((await deliveries())[2]?.data).to.include({ answer: 'x'.repeat(1000) });
  });

  it('are not sent to a private address unless that is allowed', async () => {
    await start('one', { allowPrivate: false });
    await ownerAndTask();
    await endRun(world, 't', 'r');
    await until(2);
    const [, failed] = await deliveries();
    expect(failed?.data).to.include({ status: null, end: 'refused', retry_at: null });
    expect(receiver.all).to.deep.equal([]);
  });

  it('end if the agent no longer has a URL', async () => {
    receiver.answer = (response) => response.writeHead(503).end();
    await start();
    await ownerAndTask();
    await endRun(world, 't', 'r');
    await until(2);
    await append(world, 'agent-owner', {
      type: 'AgentUpdated',
      data: { changes: { webhook_url: null } },
    });
    await world.idle();
    world.clock.jumpTo(await retryAt());
    await until(3);
    expect((await deliveries())[2]?.data).to.include({ url: null, end: 'no_url' });
  });

  it('are signed with the new secret and, for a day, with each older one', async () => {
    await start();
    await ownerAndTask();
    const rotate = (version: number): Promise<void> =>
      append(world, 'agent-owner', { type: 'WebhookSecretRotated', data: { version } });
    await rotate(1);
    await rotate(2);
    for (const sent of [1, 2, 3, 4]) {
      if (sent === 2) await rotate(3);
      await testWebhookCommand(world.store, `test-${sent}`, 'owner', world.context());
      await until(2 * sent);
      world.clock.jumpTo(world.clock.now() + DELIVERY_LIFETIME / 2);
    }
    const fits = receiver.all.map((each) => versionsThatFit('owner', each, [3, 2, 1, 0]));
    expect(fits).to.deep.equal([[2, 1], [3, 2, 1], [3, 2], [3]]);
  });

  it('are repeated on request', async () => {
    await start();
    await ownerAndTask();
    await testWebhookCommand(world.store, 'test', 'owner', world.context());
    await until(2);
    await repeatWebhookCommand(world.store, 'test', 'owner', world.context());
    await until(4);
    expect(await types()).to.deep.equal([
      'WebhookScheduled',
      'WebhookDelivered',
      'WebhookRepeated',
      'WebhookDelivered',
    ]);
    const [first, second] = receiver.all;
    expect(first?.headers['webhook-id']).to.equal('test');
    expect(second?.headers['webhook-id']).to.equal('test');
    expect(second?.body).to.equal(first?.body);
  });

  it("of one agent do not wait for another agent's slow receiver", async () => {
    const slow = new Receiver();
    slow.answer = () => {};
    const slowUrl = await slow.listen();
    try {
      await start();
      await ownerAndTask();
      await registerAgent(world, 'slow', slowUrl);
      for (let n = 0; n < 40; n += 1) {
        await testWebhookCommand(world.store, `slow-${n}`, 'slow', world.context());
      }
      await testWebhookCommand(world.store, 'quick', 'owner', world.context());
      await receiver.received.wait();
      expect(slow.all.length).to.be.at.most(4);
    } finally {
      for (const process of processes) await process.stop();
      await slow.close();
    }
  });

  it('continue after a crash before an attempt was recorded', async () => {
    const one = await start();
    await ownerAndTask();
    one.store.onAppend = (_stream, events) => {
      if (events.some(({ type }) => type === 'WebhookDelivered')) one.store.dead = true;
    };
    await endRun(world, 't', 'r');
    await receiver.received.wait();
    await eventually(() => one.store.dead);
    await one.kill();
    await start('two', { lead: 'others' });
    await until(2);
    expect(await types()).to.deep.equal(['WebhookScheduled', 'WebhookDelivered']);
    const ids = receiver.all.map(({ headers }) => headers['webhook-id']);
    expect(ids).to.have.length(2);
    expect(new Set(ids).size).to.equal(1);
  });

  it('are scheduled by the next process after a crash', async () => {
    const one = await start();
    await ownerAndTask();
    one.store.onAppend = (stream) => {
      if (stream.startsWith('webhook-')) one.store.dead = true;
    };
    await endRun(world, 't', 'r');
    await eventually(() => one.store.dead);
    await one.kill();
    await start('two', { lead: 'others' });
    await until(2);
    expect(receiver.all).to.have.length(1);
  });

  it('are not sent again if the checkpoint is lost or views are rebuilt', async () => {
    const one = await start();
    await ownerAndTask();
    await endRun(world, 't', 'r1');
    await endRun(world, 't', 'r2');
    await until(4);
    await one.stop();
    await world.project([webhooksProjection, agentsProjection]);
    await world.coordination.remember('webhooks-scheduled', '', 1_000);
    const two = await start('two', { lead: 'others' });
    await two.followed.wait((prefixes) => prefixes.includes('run-'));
    await endRun(world, 't', 'r3');
    await until(6);
    expect(receiver.all).to.have.length(3);
  });

  it('are sent after the log was unavailable', async () => {
    const one = await start();
    await ownerAndTask();
    let refusals = 3;
    one.store.onAppend = (stream) => {
      if (stream.startsWith('webhook-') && (refusals -= 1) >= 0) throw new Error('away');
    };
    await endRun(world, 't', 'r1');
    await endRun(world, 't', 'r2');
    await until(4);
    expect(one.failures).to.not.deep.equal([]);
    expect(receiver.all).to.have.length(2);
  });

  it('are found in the view while pending', async () => {
    receiver.answer = (response) => response.writeHead(500).end();
    const one = await start();
    await ownerAndTask();
    await endRun(world, 't', 'r');
    await until(2);
    await world.clock.advance(1500);
    await one.stop();
    // The view of agents lags: it lacks this agent's URL.
    await world.project([webhooksProjection]);
    receiver.answer = (response) => response.writeHead(200).end();
    const two = await start('two', { lead: 'others' });
    await eventually(() => {
      expect(two.webhooks.deliveries.size).to.equal(1);
    });
    world.clock.jumpTo(await retryAt());
    await until(3);
    expect(await types()).to.deep.equal(['WebhookScheduled', 'WebhookFailed', 'WebhookDelivered']);
  });

  it('are scheduled once even if two processes both act as the leader', async () => {
    await start('one', { lead: 'a' });
    await start('two', { lead: 'b' });
    await ownerAndTask();
    for (let n = 0; n < 5; n += 1) await endRun(world, 't', `r${n}`);
    await until(10);
    const scheduled = (await types()).filter((type) => type === 'WebhookScheduled');
    expect(scheduled).to.have.length(5);
  });
});
