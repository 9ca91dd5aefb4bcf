import { expect } from 'chai';
import { updateAgent, agentFold, requireAgent } from '../../../domain/agents/agent.ts';
import { decorate } from '../../../domain/decorate.ts';
import type { EventStore } from '../../../domain/event-store.ts';
import { handle } from '../../../domain/handle.ts';
import { streams } from '../../../domain/streams.ts';
import { WebhookRegistry } from '../../../scheduler/webhooks/webhook-registry.ts';
import { World } from '../scheduler-world.ts';
import { registerAgent } from './webhook-harness.ts';

describe('the registry of webhooks', () => {
  let world: World;

  beforeEach(async () => {
    world = await World.open();
  });

  afterEach(async () => {
    await world.close();
  });

  it('keeps the latest state, however long an earlier read takes', async () => {
    const url = 'http://localhost/hook';
    await registerAgent(world, 'owner', null);
    let answer = (): void => {};
    let reads = 0;
    const readStream: EventStore['readStream'] = async (stream, part) => {
      const events = await world.store.readStream(stream, part);
      reads += 1;
      if (reads === 1) await new Promise<void>((resolve) => (answer = resolve));
      return events;
    };
    const agents = new WebhookRegistry(decorate(world.store, { readStream }), world.readModel);
    const found = agents.find('owner');
    while (reads === 0) await world.idle();
    await handle({
      store: world.store,
      stream: streams.agent('owner'),
      fold: agentFold,
      decide: (state) => updateAgent(requireAgent(state), { webhook_url: url }),
      context: world.context(),
    });
    const [event] = await world.store.readStream(streams.agent('owner'), { from: 1 });
    if (event === undefined) throw new Error('nothing was changed');
    const taken = agents.take(event);
    await world.idle();
    answer();
    await Promise.all([found, taken]);
    expect(agents.get('owner')?.url).to.equal(url);
  });
});
