import { expect } from 'chai';
import { publishEvent } from '../../../domain/topics/publishing.ts';
import { MAX_TRIGGERED } from '../../../domain/topics/topic.ts';
import { commandContext, rejection, START } from '../given.ts';
import { MemoryLog } from '../memory-log.ts';

const event = { topic: 'orders.new', payload: { n: 1 }, source_agent_id: 'agent-1' };

describe('publishing an event', () => {
  it('records it with the tasks that it triggers, numbered within its topic', async () => {
    const store = new MemoryLog();
    const first = await publishEvent(store, event, ['t1', 't2'], commandContext('a'));
    const second = await publishEvent(store, event, [], commandContext('b', START + 5));
    expect(first).to.include({ topic: 'orders.new', stream_id: `${START}-0` });
    expect(second.stream_id).to.equal(`${START + 5}-1`);
    expect(first.event_id).to.not.equal(second.event_id);
    const [recorded] = await store.readStream('topic-orders.new');
    expect(recorded?.data).to.deep.equal({
      ...event,
      event_id: first.event_id,
      published_at: first.published_at,
      triggered_tasks: ['t1', 't2'],
    });
  });

  it('returns the original event for a repeated command', async () => {
    const store = new MemoryLog();
    const first = await publishEvent(store, event, ['t1'], commandContext('a'));
    const again = await publishEvent(
      store,
      event,
      ['t1', 't2'],
      commandContext('a', START + 60_000),
    );
    expect(again).to.deep.equal(first);
    expect(store.typesOf('topic-orders.new')).to.have.lengthOf(1);
  });

  it('refuses to trigger more tasks than one event may', async () => {
    const store = new MemoryLog();
    const tasks = Array.from({ length: MAX_TRIGGERED }, (_, n) => `t${n}`);
    await publishEvent(store, event, tasks, commandContext('a'));
    const more = publishEvent(store, event, [...tasks, 'one'], commandContext('b'));
    expect(await rejection(more)).to.include({ code: 'STATE_CONFLICT' });
    expect(store.typesOf('topic-orders.new')).to.have.lengthOf(1);
  });
});
