import { expect } from 'chai';
import { toIso, type Instant } from '../../../domain/clock.ts';
import { useTzDatabase } from '../../../domain/schedule/zone.ts';
import { pauseTaskCommand, snoozeTaskCommand } from '../../../domain/tasks/task-commands.ts';
import { dueProjection } from '../../../projections/views/due.ts';
import { tasksProjection } from '../../../projections/views/tasks.ts';
import { AuditedProcess } from '../audit/audit-world.ts';
import { minute, START, World, type SchedulerProcess } from '../scheduler-world.ts';

const hour = 60 * minute;
const day = 24 * hour;
const zone = 'Europe/Berlin';
const daily = { schedule_expr: '0 9 * * *', timezone: zone } as const;

/** Uses a tz database in which the zone is one hour ahead of UTC, and this many hours from an instant on. */
function rules(version: string, hours: number, from: Instant = Number.NEGATIVE_INFINITY): void {
  useTzDatabase({
    version,
    offsets: (name) => (at) => (name === zone ? (at >= from ? hours : 1) * hour : 0),
  });
}

describe('a change of the tz database', () => {
  let world: World;

  beforeEach(async () => {
    world = await World.open();
    rules('2099a', 1);
  });

  afterEach(async () => {
    await world.close();
    useTzDatabase(null);
  });

  /** Ends a process and starts another with different rules. */
  const restart = async (
    process: SchedulerProcess,
    change: () => void,
  ): Promise<AuditedProcess> => {
    await process.stop();
    change();
    return new AuditedProcess(world, await world.start('two'));
  };

  const corrections = async (taskId: string): Promise<readonly unknown[]> =>
    (await world.events(`fires-${taskId}`)).flatMap((event) =>
      event.type === 'NextFireCorrected' ? [event.data] : [],
    );

  it('moves the next fire to its new time, where it fires once', async () => {
    await world.createTask('t', daily);
    const first = await world.start('one');
    const second = await restart(first, () => rules('2099b', 3));
    await second.pass();
    expect(second.telemetry.audited('next_fire_moved')).to.deep.equal({ found: 1, mended: 1 });
    const [correction] = await corrections('t');
    const moved = toIso(START + 6 * hour);
    expect(correction).to.deep.include({ next_fire_at: moved, tz_version: '2099b' });
    await world.project([dueProjection, tasksProjection]);
    const due = await world.readModel.get(dueProjection, 't');
    expect(due?.document.next_run_at).to.equal(moved);
    const task = await world.readModel.get(tasksProjection, 't');
    expect(task?.document['next_run_at']).to.equal(moved);
    await world.clock.advance(day + 12 * hour);
    const { fired, requested, skipped } = await world.outcome('t');
    expect(fired).to.deep.equal([moved, toIso(START + day + 6 * hour)]);
    expect(requested).to.deep.equal(fired);
    expect(skipped).to.deep.equal([]);
  });

  it('moves the next fire later, without a fire at the old time', async () => {
    await world.createTask('t', daily);
    const second = await restart(await world.start('one'), () => rules('2099b', -2));
    await second.pass();
    await world.clock.advance(day);
    expect((await world.outcome('t')).fired).to.deep.equal([toIso(START + 11 * hour)]);
  });

  it('applies the misfire policy to fires that are past under the new rules', async () => {
    await world.createTask('t', daily);
    const first = await world.start('one');
    await world.clock.advance(7 * hour);
    const second = await restart(first, () => rules('2099b', 3));
    await second.pass();
    await world.clock.advance(day - 7 * hour);
    expect((await world.outcome('t')).fired).to.deep.equal([toIso(START + 6 * hour)]);
  });

  it('loses no fire that the new rules move before the old time', async () => {
    await world.createTask('t', daily);
    const first = await world.start('one');
    await world.clock.advance(8 * hour - 1000);
    await restart(first, () => rules('2099b', 3));
    await world.clock.advance(day);
    expect((await world.outcome('t')).fired).to.deep.equal([
      toIso(START + 6 * hour),
      toIso(START + day + 6 * hour),
    ]);
  });

  for (const hours of [0, 2]) {
    it(`neither repeats a fire of the old rules nor skips the next (${hours} h)`, async () => {
      await world.createTask('t', daily);
      const first = await world.start('one');
      await world.clock.advance(8 * hour + minute);
      const ran = toIso(START + 8 * hour);
      expect((await world.outcome('t')).fired).to.deep.equal([ran]);
      const second = await restart(first, () => rules('2099b', hours));
      await second.pass();
      await world.clock.advance(2 * day + 2 * hour);
      const at = (9 - hours) * hour;
      expect((await world.outcome('t')).fired).to.deep.equal([
        ran,
        toIso(START + day + at),
        toIso(START + 2 * day + at),
      ]);
    });
  }

  it('does not correct a fire whose time is unchanged', async () => {
    await world.createTask('t', daily);
    const second = await restart(await world.start('one'), () => rules('2099b', 2, START + day));
    await second.pass();
    expect(await corrections('t')).to.deep.equal([]);
    await world.clock.advance(2 * day);
    expect((await world.outcome('t')).fired).to.deep.equal([
      toIso(START + 8 * hour),
      toIso(START + day + 7 * hour),
    ]);
  });

  it('leaves snoozed fires, paused tasks and tasks in UTC unchanged', async () => {
    await world.createTask('snoozed', daily);
    await world.createTask('paused', daily);
    await world.createTask('utc', { schedule_expr: '0 9 * * *' });
    const first = await world.start('one');
    await snoozeTaskCommand({ ...world.command('snoozed'), delaySeconds: 1800 });
    await pauseTaskCommand(world.command('paused'));
    const second = await restart(first, () => rules('2099b', 3));
    const { findings } = await second.pass();
    expect(findings).to.deep.equal({});
  });

  it('leaves each decision with the version on which it was based', async () => {
    await world.createTask('t', { ...daily, misfire_policy: 'skip' });
    const first = await world.start('one');
    await world.clock.advance(day);
    await restart(first, () => rules('2099b', 1));
    await world.clock.advance(day);
    const decided = await world.events('fires-t');
    expect(decided.map(({ type, metadata }) => [type, metadata.tzVersion])).to.deep.equal([
      ['Fired', '2099a'],
      ['Fired', '2099b'],
    ]);
  });

  it('is checked once, and the version is remembered afterwards', async () => {
    await world.createTask('t', daily);
    const second = await restart(await world.start('one'), () => rules('2099b', 3));
    await second.pass();
    expect(await world.coordination.recall('tz-database')).to.match(/^2099b, ICU /);
    await second.pass();
    const third = await restart(second.process, () => {});
    await third.pass();
    expect(await corrections('t')).to.have.length(1);
  });

  it('is also found by the slow check when the remembered version is current', async () => {
    await world.createTask('t', daily);
    const first = new AuditedProcess(world, await world.start('one'));
    await first.pass();
    const second = await restart(first.process, () => rules('2099a', 3));
    await second.pass();
    expect(second.telemetry.audited('next_fire_moved')).to.deep.equal({ found: 1, mended: 1 });
  });

  it('is corrected once by two concurrent processes', async () => {
    await world.createTask('t', daily);
    const first = await world.start('one');
    await first.stop();
    rules('2099b', 3);
    const process = await world.start('two');
    await world.project([dueProjection]);
    const both = [new AuditedProcess(world, process), new AuditedProcess(world, process)];
    const { store } = process;
    let waiting = 0;
    let go: () => void = () => {};
    const met = new Promise<void>((resolve) => (go = resolve));
    store.onAppend = async (stream) => {
      if (stream !== 'fires-t' || waiting === 2) return;
      waiting += 1;
      if (waiting === 2) go();
      await met;
    };
    const passes = both.map(({ audit }) => audit.pass(new AbortController().signal));
    let over = false;
    const all = Promise.all(passes).then(() => (over = true));
    while (!over) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (waiting === 2) await world.clock.advance(100);
    }
    await all;
    expect(waiting).to.equal(2);
    expect(await corrections('t')).to.have.length(1);
  });
});
