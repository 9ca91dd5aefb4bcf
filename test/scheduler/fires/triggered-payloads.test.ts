import { expect } from 'chai';
import type { RecordedEvent } from '../../../domain/event-store.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { triggeredRunId } from '../../../domain/ids.ts';
import { createTaskCommand } from '../../../domain/tasks/task-commands.ts';
import { streams } from '../../../domain/streams.ts';
import { publishEvent, type Published } from '../../../domain/topics/publishing.ts';
import { definition } from '../../projections/recorded.ts';
import { World } from '../scheduler-world.ts';

const on = { schedule_kind: 'event', schedule_expr: 'orders.#' } as const;
const large = { text: 'x'.repeat(2_000) };

describe('the payload of an event that triggers tasks', () => {
  let world: World;

  beforeEach(async () => {
    world = await World.open();
  });

  afterEach(async () => {
    await world.close();
  });

  const publish = (
    tasks: readonly string[],
    payload: Parameters<typeof publishEvent>[1]['payload'] = large,
    namespace?: string,
  ): Promise<Published> => {
    const event = { topic: 'orders.new', payload, source_agent_id: 'agent-2' };
    return publishEvent(world.store, event, tasks, world.context(), namespace);
  };

  const start = async (): Promise<void> => {
    await world.start('one', { requester: true });
    await world.clock.advance(3000);
  };

  /** The payloads in the requests of runs. */
  const copies = async (): Promise<readonly unknown[]> =>
    (await world.events('run-')).flatMap((event) =>
      event.type === 'RunRequested' ? [event.data.event?.payload] : [],
    );

  const stored = (): Promise<readonly RecordedEvent[]> => world.events('payload-');

  it('is stored once, before the first run, if several tasks need it', async () => {
    for (const task of ['a', 'b', 'c']) await world.createTask(task, on);
    const { event_id } = await publish(['a', 'b', 'c']);
    await start();
    expect(await copies()).to.deep.equal([undefined, undefined, undefined]);
    const [event, ...more] = await stored();
    expect(more).to.deep.equal([]);
    expect(event).to.deep.include({
      stream: `payload-${event_id}`,
      type: 'PayloadStored',
      data: { event_id, payload: large, triggered_tasks: ['a', 'b', 'c'] },
    });
    const [first] = await world.events('run-');
    expect((first?.position ?? '') > (event?.position ?? '')).to.equal(true);
  });

  it('belongs to the namespace of the event', async () => {
    await publish(['a', 'b'], large, 'shop');
    await start();
    const [event] = await stored();
    expect(event?.data).to.include({ namespace: 'shop' });
    expect(event?.metadata).to.include({ namespace: 'shop', actor: 'service' });
  });

  it('is copied if only one task needs it, or if it has at most 1 KiB', async () => {
    for (const task of ['a', 'b']) await world.createTask(task, on);
    const small = { text: 'x'.repeat(1_024 - JSON.stringify({ text: '' }).length) };
    await publish(['a']);
    await publish(['a', 'b'], small);
    await start();
    expect(await stored()).to.deep.equal([]);
    expect(await copies()).to.have.deep.members([large, small, small]);
    await publish(['a', 'b'], { text: `${small.text}x` });
    await world.clock.advance(3000);
    expect(await stored()).to.have.lengthOf(1);
  });

  describe('when its event is read again', () => {
    /** The saved position is lost. */
    const readAgain = async (): Promise<void> => {
      const recall = world.coordination.recall.bind(world.coordination);
      world.coordination.recall = () => Promise.resolve(null);
      await world.start('two', { requester: true });
      await world.clock.advance(5000);
      world.coordination.recall = recall;
    };

    it('is not stored a second time', async () => {
      for (const task of ['a', 'b']) await world.createTask(task, on);
      await publish(['a', 'b']);
      await start();
      await readAgain();
      expect(await stored()).to.have.lengthOf(1);
      expect(await copies()).to.have.lengthOf(2);
    });

    it('is not stored again after retention has removed it with its runs', async () => {
      for (const task of ['a', 'b']) await world.createTask(task, on);
      const { event_id } = await publish(['a', 'b']);
      await start();
      for (const task of ['a', 'b']) {
        const stream = streams.run(triggeredRunId(task, event_id));
        const removed = { type: 'RunRemoved', data: {} } as const;
        const { store } = world;
        const { revision } = await store.append(
          stream,
          toNewEvents(stream, [removed], world.context()),
          'any',
        );
        await store.truncate(stream, revision);
      }
      await world.store.truncate(streams.payload(event_id), 1);
      await readAgain();
      expect(await stored()).to.deep.equal([]);
      expect(await copies()).to.deep.equal([]);
    });
  });

  it('adds its bytes to the log once for a thousand tasks', async function () {
    this.timeout(60_000);
    const payload = { text: 'x'.repeat(100_000) };
    const tasks = Array.from({ length: 1_000 }, (_, n) => `task-${n}`);
    for (const taskId of tasks) {
      const { store } = world;
      await createTaskCommand({
        store,
        taskId,
        definition: definition(on),
        context: world.context(),
      });
    }
    const before = bytesOf(await world.events());
    await publish(tasks, payload);
    await start();
    expect(await copies()).to.have.lengthOf(1_000);
    // Once in the topic, and once for the runs.
    const grown = bytesOf(await world.events()) - before;
    expect(grown).to.be.lessThan(2 * 100_000 + 1_000 * 1_000);
  });
});

const bytesOf = (events: readonly RecordedEvent[]): number =>
  events.reduce(
    (sum, { data, metadata }) =>
      sum + JSON.stringify(data).length + JSON.stringify(metadata).length,
    0,
  );
