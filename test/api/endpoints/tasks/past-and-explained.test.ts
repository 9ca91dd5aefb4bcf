import { expect } from 'chai';
import type { RecordedEvent } from '../../../../domain/event-store.ts';
import { streams } from '../../../../domain/streams.ts';
import { tasksProjection, type TaskDocument } from '../../../../projections/views/tasks.ts';
import { randomBy } from '../../../support/random.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { ExplainedWorld, minute } from './explaining.ts';

/** Whole numbers from 0 up to a limit, the same for the same seed. */
function below(seed: number): (limit: number) => number {
  const next = randomBy(seed);
  return (limit) => Math.floor(next() * limit);
}

describe('a task with many changes', () => {
  const api = useRunningApi();
  let world: ExplainedWorld;
  before(async () => {
    world = await ExplainedWorld.open(api(), '2027-02-01T07:30:00.000Z');
  });

  /** Random changes of a task that fires every minute. */
  async function lived(random: (below: number) => number): Promise<string> {
    const task = await world.create({
      schedule_expr: '* * * * *',
      misfire_policy: ['skip', 'latest', 'all'][random(3)],
      max_runs: random(2) === 0 ? null : 12,
    });
    const commands: readonly (() => Promise<unknown>)[] = [
      () => world.command(task, 'pause'),
      () => world.command(task, `resume?missed=${['skip', 'latest', 'all'][random(3)]}`),
      () => world.command(task, 'snooze', { delay_seconds: 30 + random(200) }),
      () =>
        world.person.client.put(`/tasks/${task}`, { schedule_expr: `*/${1 + random(3)} * * * *` }),
      () => world.person.client.put(`/tasks/${task}`, { max_runs: 10 + random(10) }),
      () => world.decide(task),
      () => world.decide(task),
      () => world.decide(task),
    ];
    for (let step = 0; step < 25; step += 1) {
      world.until(api().clock.now() + random(3 * minute));
      // The task's state makes some of them fail, which is intended.
      await commands[random(commands.length)]?.().catch(() => undefined);
    }
    await world.decide(task);
    return task;
  }

  async function eventsOf(task: string): Promise<readonly RecordedEvent[]> {
    const { store } = api();
    const both = [
      ...(await store.readStream(streams.task(task), { limit: 1000 })),
      ...(await store.readStream(streams.fires(task), { limit: 1000 })),
    ];
    return both.sort((one, other) => (one.position < other.position ? -1 : 1));
  }

  for (let seed = 1; seed <= 6; seed += 1) {
    it(`is shown as of each position as the view showed it then, and explained as the log decides (${seed})`, async () => {
      const task = await lived(below(seed));
      const events = await eventsOf(task);
      let document: TaskDocument | null = null;
      const { client } = world.person;
      for (const event of events) {
        document = tasksProjection.evolve(document, event, task);
        const answer = await client.get(`/tasks/${task}?as_of=${event.position}`);
        const { status, next_run_at, exhausted, revision, updated_at, schedule_expr, max_runs } =
          document as TaskDocument;
        expect(answer.json, `as of ${event.position}`).to.deep.include({
          status,
          next_run_at,
          exhausted,
          revision,
          updated_at,
          schedule_expr,
          max_runs,
        });
      }
      for (const event of events) {
        if (event.type === 'Fired') {
          const { nominal, run_id } = event.data;
          const answer = await world.explain(task, nominal);
          expect(answer.json, nominal).to.include({ fired: true, reason: 'fired', run_id });
        } else if (event.type === 'FiresSkipped') {
          const { from, to, reason } = event.data;
          for (const nominal of [from, to]) {
            const answer = await world.explain(task, nominal);
            expect(answer.json, answer.text).to.include({ fired: false, reason, run_id: null });
          }
        }
      }
      expect(events.length).to.be.greaterThan(5);
    });
  }
});
