import { expect } from 'chai';
import type { DataOf } from '../../../domain/events/catalogue.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { EventStoreError } from '../../../domain/event-store.ts';
import { endsOf } from '../../../domain/runs/run-steps.ts';
import { streams } from '../../../domain/streams.ts';
import { EventPayloads } from '../../../projections/reading/event-payloads.ts';
import { request } from '../../projections/recorded.ts';
import { WorkerWorld } from './worker-world.ts';

const large = { text: 'x'.repeat(2_000), order: 7 };
const event: NonNullable<DataOf<'RunRequested'>['event']> = {
  id: 'event-1',
  topic: 'orders.new',
  source_agent_id: 'agent-2',
  published_at: '2026-03-02T00:00:00.000Z',
};

describe('a run of an event whose payload is stored once', () => {
  let world: WorkerWorld;

  beforeEach(async () => {
    world = await WorkerWorld.open();
    const pipeline = [{ id: 'show', uses: 'echo', with: '${event}' }];
    await world.task('t', [], { payload: { pipeline } });
  });

  afterEach(async () => {
    await world.close();
  });

  const store = async (namespace?: string): Promise<void> => {
    const place = namespace === undefined ? {} : { namespace };
    const data = { event_id: event.id, payload: large, triggered_tasks: ['t'], ...place };
    const stream = streams.payload(event.id);
    const stored = { type: 'PayloadStored', data } as const;
    const context = world.world.context();
    await world.world.store.append(stream, toNewEvents(stream, [stored], context), 'none');
  };

  const ask = async (id: string): Promise<void> => {
    const stream = streams.run(id);
    const data = request({ task_id: 't', trigger: 'event', scheduled_for: null, event });
    const asked = { type: 'RunRequested', data } as const;
    const context = world.world.context();
    await world.world.store.append(stream, toNewEvents(stream, [asked], context), 'none');
    await world.world.idle();
  };

  const resultOf = async (id: string): Promise<unknown> => {
    const { state, steps } = await world.run(id);
    expect(state).to.equal('succeeded');
    return endsOf(steps)[0]?.result;
  };

  it('sees the whole event', async () => {
    await store();
    await world.start('one');
    await ask('run-1');
    expect(await resultOf('run-1')).to.deep.equal({ ...event, payload: large });
  });

  it('sees it after a restart in another process', async () => {
    await store();
    await ask('run-1');
    await world.start('one');
    await world.world.idle();
    expect(await resultOf('run-1')).to.deep.equal({ ...event, payload: large });
  });

  it('shares a single read with the other runs of the event', async () => {
    await store();
    const worker = await world.start('one', { slots: 8 });
    let read = 0;
    worker.store.onRead = (stream) => {
      if (stream === streams.payload(event.id)) read += 1;
    };
    for (let n = 0; n < 20; n += 1) await ask(`run-${n}`);
    for (let n = 0; n < 20; n += 1) await resultOf(`run-${n}`);
    expect(read).to.equal(1);
  });

  it('waits while the log is unavailable', async () => {
    await store();
    const worker = await world.start('one');
    worker.store.onRead = (stream) => {
      if (stream === streams.payload(event.id)) throw new EventStoreError('UNAVAILABLE', 'away');
    };
    await ask('run-1');
    await world.clock.advance(10_000);
    expect((await world.run('run-1')).state).to.be.oneOf(['queued', 'running']);
    const reported = (): string[] => worker.lines.filter((line) => line.startsWith('event log'));
    expect(reported()).to.deep.equal(['event log unavailable: away']);
    worker.store.onRead = () => {};
    await world.clock.advance(120_000);
    expect(await resultOf('run-1')).to.deep.equal({ ...event, payload: large });
    expect(reported().slice(1)).to.deep.equal(['event log available again']);
  });

  for (const [what, prepare] of [
    ['is not in the log', async () => {}],
    ['belongs to another namespace', () => store('shop')],
  ] as const) {
    it(`fails if the payload ${what}, and says so`, async () => {
      await prepare();
      await world.start('one');
      await ask('run-1');
      const last = (await world.eventsOf('run-1')).at(-1);
      expect(last?.type).to.equal('RunFailed');
      expect(last?.data).to.include({
        error: 'the payload of its event event-1 is not in the log',
      });
    });
  }
});

describe('the payloads of events', () => {
  let world: WorkerWorld;

  beforeEach(async () => {
    world = await WorkerWorld.open();
  });

  afterEach(async () => {
    await world.close();
  });

  it('are different objects for each reader', async () => {
    const { store } = world.world;
    const stream = streams.payload(event.id);
    const data = { event_id: event.id, payload: large, triggered_tasks: ['t'] };
    const stored = { type: 'PayloadStored', data } as const;
    await store.append(stream, toNewEvents(stream, [stored], world.world.context()), 'none');
    const payloads = new EventPayloads(store);
    const one = await payloads.whole(event, 'default');
    const other = await payloads.whole(event, 'default');
    expect(one?.payload).to.deep.equal(large);
    expect(other?.payload).to.not.equal(one?.payload);
    expect(await payloads.whole(event, 'shop')).to.equal(null);
  });
});
