import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import type { RunEvent } from '../../../domain/events/catalogue.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { streams } from '../../../domain/streams.ts';
import { publishEvent } from '../../../domain/topics/publishing.ts';
import { request as runRequest } from '../../projections/recorded.ts';
import { longVersions } from '../../support/left-out.ts';
import { WaitsWorld } from './waits-world.ts';

const second = 1000;

/** `SVC_TEST_LONG=1`: more. Far more than are appended at once, or read in one page. */
const EVENTS = longVersions() ? 10_000 : 2000;

describe('a step that waits for an event', () => {
  let world: WaitsWorld;

  beforeEach(async () => {
    world = await WaitsWorld.open();
  });
  afterEach(() => world.close());

  const waits = (args: object): Promise<void> =>
    world.task('t', [
      { id: 'pay', uses: 'wait.event', with: { topic: 'orders.paid', ...args } },
      { id: 'after', uses: 'echo', with: { got: '${steps.pay.payload.n}' } },
    ]);

  const publish = async (payload: JsonObject = {}, topic = 'orders.paid'): Promise<string> => {
    const event = { topic, payload, source_agent_id: 'agent-1' };
    const { event_id } = await publishEvent(world.world.store, event, [], world.world.context());
    await world.world.idle();
    return event_id;
  };

  /** A run that waits. */
  const waiting = async (): Promise<string> => {
    const runId = await world.request('t');
    await world.untilState(runId, 'waiting');
    return runId;
  };

  const endOf = async (runId: string): Promise<unknown> => {
    await world.untilEnded(runId);
    const [resumed, ...more] = await world.resumptionsOf(runId);
    expect(more).to.deep.equal([]);
    return resumed?.by;
  };

  const resumedCount = async (): Promise<number> =>
    (await world.world.events('run-')).filter(({ type }) => type === 'RunStepResumed').length;

  it('has the event as its result, in the form that runs of events see', async () => {
    await waits({});
    await world.start('a');
    const runId = await waiting();
    const id = await publish({ n: 1 });
    const published_at = toIso(world.clock.now());
    expect(await endOf(runId)).to.deep.equal({ kind: 'event', id });
    const [resumed] = await world.resumptionsOf(runId);
    const rest = { topic: 'orders.paid', payload: { n: 1 }, source_agent_id: 'agent-1' };
    expect(resumed?.result).to.deep.equal({ id, ...rest, published_at });
  });

  it('ignores earlier events, and those of other topics', async () => {
    await waits({});
    await world.start('a');
    await publish({ n: 1 });
    const runId = await waiting();
    await publish({ n: 2 }, 'orders.other');
    const id = await publish({ n: 3 });
    expect(await endOf(runId)).to.deep.equal({ kind: 'event', id });
  });

  it('can count events since the run was requested, and ends with the first', async () => {
    for (const topic of ['orders.paid', 'orders.*']) {
      await world.task(`since ${topic}`, [
        { id: 'nap', uses: 'sleep', with: { seconds: 5 } },
        { id: 'pay', uses: 'wait.event', with: { topic, since: 'run' } },
      ]);
    }
    await world.start('a');
    await publish({ n: 1 });
    const exact = await world.request('since orders.paid');
    const pattern = await world.request('since orders.*');
    const id = await publish({ n: 2 });
    await publish({ n: 3 });
    await world.clock.advance(6 * second);
    for (const runId of [exact, pattern]) {
      await world.untilEnded(runId);
      const resumed = await world.resumptionsOf(runId);
      expect(resumed.at(-1)?.by).to.deep.equal({ kind: 'event', id });
    }
  });

  it('ends with an event for which its condition is true', async () => {
    await waits({ topic: 'orders.#', if: "event.payload.order == 'b' && event.payload.n" });
    await world.start('a');
    const runId = await waiting();
    await publish({ order: 'a', n: 1 });
    await publish({ order: 'b' });
    const id = await publish({ order: 'b', n: 3 });
    expect(await endOf(runId)).to.deep.equal({ kind: 'event', id });
  });

  it('continues to wait if its condition fails', async () => {
    await waits({ if: 'length(event.payload.list) > `1`' });
    await world.start('a');
    const runId = await waiting();
    await publish({ list: 1 });
    expect((await world.run(runId)).state).to.equal('waiting');
    const id = await publish({ list: [1, 2] });
    expect(await endOf(runId)).to.deep.equal({ kind: 'event', id });
  });

  it('fails at once if its condition does not read the event, because it would never be true', async () => {
    await world.start('a');
    for (const [condition, error] of [
      ['payload.n', 'if: must read event, such as event.payload.id'],
      ["params.order == 'b'", 'if: must read event, such as event.payload.id'],
      ['event.payload.n ==', 'is invalid'],
      ['now+9999999999w > event.published_at', null],
      ['@.event.payload.n', null],
      ['`true`', null],
    ] as const) {
      const id = `if ${condition}`;
      await world.task(id, [{ uses: 'wait.event', with: { topic: 'a', if: condition } }]);
      const runId = await world.request(id);
      const { state } = await world.run(runId);
      expect(state, condition).to.equal(error === null ? 'waiting' : 'failed');
      const last = (await world.eventsOf(runId)).at(-1);
      if (error !== null) expect(JSON.stringify(last?.data)).to.contain(error);
    }
    // A condition that fails for every event ends nothing, and nothing else waits for it.
    await publish({ n: 1 }, 'a');
    expect(await resumedCount()).to.equal(2);
  });

  it('fails at its limit if no event arrived', async () => {
    await waits({ timeout_seconds: 10 });
    await world.start('a');
    const runId = await waiting();
    await world.clock.advance(11 * second);
    expect(await endOf(runId)).to.deep.equal({ kind: 'timeout' });
    const [resumed] = await world.resumptionsOf(runId);
    expect(resumed?.error).to.equal('no event on orders.paid arrived within 10 s');
  });

  it('ends once if the event arrives in the millisecond of its limit', async () => {
    await waits({ timeout_seconds: 10 });
    await world.start('a');
    for (const when of ['before', 'with', 'after'] as const) {
      const runId = await waiting();
      const [wait] = (await world.run(runId)).waits;
      const until = Date.parse(wait?.until ?? '');
      if (when === 'after') await world.clock.advanceTo(until);
      else await world.clock.advanceTo(until - 1);
      if (when === 'before') await publish({ n: 1 });
      if (when !== 'with') await world.clock.advance(1000);
      else {
        await Promise.all([world.clock.advanceTo(until), publish({ n: 1 })]);
      }
      if (when === 'after') await publish({ n: 1 });
      const by = (await endOf(runId)) as { readonly kind: string };
      if (when === 'before') expect(by.kind).to.equal('event');
      if (when === 'after') expect(by.kind).to.equal('timeout');
    }
  });

  it('ends with an event that arrived while no process was alive, even after its limit', async () => {
    await waits({ timeout_seconds: 60 });
    const first = await world.start('a');
    const runId = await waiting();
    await world.clock.advance(10 * second);
    first.kill();
    const id = await publish({ n: 1 });
    await world.clock.advance(100 * second);
    await publish({ n: 2 });
    await world.start('b');
    expect(await endOf(runId)).to.deep.equal({ kind: 'event', id });
  });

  it('does not count an event after its limit that no process saw', async () => {
    await waits({ timeout_seconds: 60 });
    const first = await world.start('a');
    const runId = await waiting();
    first.kill();
    await world.clock.advance(100 * second);
    await publish({ n: 1 });
    await world.start('b');
    expect(await endOf(runId)).to.deep.equal({ kind: 'timeout' });
  });

  it('is found by the process that leads next', async () => {
    await waits({});
    const first = await world.start('a');
    await world.start('b');
    const runId = await waiting();
    first.kill();
    const id = await publish({ n: 1 });
    expect(await endOf(runId)).to.deep.equal({ kind: 'event', id });
  });

  it('does not need the saved position', async () => {
    await waits({});
    await publish({ n: 0 });
    const first = await world.start('a');
    const runId = await waiting();
    await world.clock.advance(30 * second);
    first.kill();
    await world.world.coordination.remember('events-matched', '', 1000);
    const id = await publish({ n: 1 });
    await world.start('b');
    expect(await endOf(runId)).to.deep.equal({ kind: 'event', id });
  });

  it('starts from the saved position', async () => {
    await waits({});
    const first = await world.start('a');
    const runId = await waiting();
    for (let n = 0; n < 5; n += 1) await publish({ n }, 'orders.other');
    await world.clock.advance(30 * second);
    first.kill();
    const saved = await world.world.coordination.recall('events-matched');
    const others = await world.world.events('topic-');
    expect(saved).to.not.equal(null);
    expect(String(saved) >= String(others.at(-1)?.position)).to.equal(true);
    const other = await world.start('b');
    const id = await publish({ n: 1 });
    expect(await endOf(runId)).to.deep.equal({ kind: 'event', id });
    expect(other.failures).to.deep.equal([]);
  });

  for (const when of ['before', 'after'] as const) {
    it(`ends once when its process dies ${when} RunStepResumed is written`, async () => {
      await waits({});
      const first = await world.start('a');
      const runId = await waiting();
      first.dieAt(when, (_stream, events) => events.some(({ type }) => type === 'RunStepResumed'));
      const id = await publish({ n: 1 });
      await world.until(() => Promise.resolve(first.store.dead));
      await world.start('b');
      expect(await endOf(runId)).to.deep.equal({ kind: 'event', id });
      expect((await world.run(runId)).state).to.equal('succeeded');
    });
  }

  it(`is resumed with ${EVENTS} others by one event, even if none of them was loaded`, async () => {
    await waits({});
    const { store } = world.world;
    const request = runRequest({ task_id: 't', created_by: 'agent-1', trigger: 'manual' });
    const at = toIso(world.clock.now());
    const limits = { since: at, until: toIso(world.clock.now() + 86_400_000) };
    for (let n = 0; n < EVENTS; n += 100) {
      const some = Array.from({ length: 100 }, (_, index) => `run-${n + index}`);
      await Promise.all(
        some.map((id) => {
          const wait = { step: 'pay', wait_id: `wait-${id}`, task_id: 't', attempt: 1, ...limits };
          const waits_for = { kind: 'event', topic: 'orders.paid' } as const;
          const events: RunEvent[] = [
            { type: 'RunRequested', data: { ...request, scheduled_for: null, run_at: at } },
            { type: 'RunStarted', data: { worker: 'gone', attempt: 1, leased_until: at } },
            { type: 'RunStepSuspended', data: { ...wait, waits_for } },
            { type: 'RunReleased', data: { worker: 'gone' } },
          ];
          const stream = streams.run(id);
          return store.append(stream, toNewEvents(stream, events, world.world.context()), 'none');
        }),
      );
    }
    await world.start('a');
    const id = await publish({ n: 1 });
    const resumed = async (): Promise<readonly string[]> =>
      (await world.world.events('run-')).flatMap((event) =>
        event.type === 'RunStepResumed' && event.data.by.id === id ? [event.stream] : [],
      );
    await world.until(async () => (await resumed()).length >= EVENTS);
    const streamsResumed = await resumed();
    expect(streamsResumed).to.have.lengthOf(EVENTS);
    expect(new Set(streamsResumed).size).to.equal(EVENTS);
  }).timeout(180_000);
});
