import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import { scheduledRunId } from '../../../domain/ids.ts';
import { tzVersion } from '../../../domain/schedule/zone.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { definition } from '../../projections/recorded.ts';
import { AuditedProcess, plant } from '../audit/audit-world.ts';
import { minute, START, World } from '../scheduler-world.ts';

const hour = 60 * minute;
const day = 24 * hour;

/** On Sundays. An earlier release fired it daily, because it read the range after 7 had become 0. START is a Monday. */
const sundays = { schedule_expr: '0 0 * * 7-7' } as const;
/** Every 24 hours of real time. An earlier release counted by the wall clock, which gives 06:30Z in winter. */
const elapsed = {
  schedule_kind: 'rrule',
  schedule_expr: 'DTSTART;TZID=America/New_York:20251031T013000\nRRULE:FREQ=HOURLY;INTERVAL=24',
  timezone: 'America/New_York',
} as const;

describe('a release that computes different fires', () => {
  let world: World;

  beforeEach(async () => {
    world = await World.open();
  });

  afterEach(async () => {
    await world.close();
  });

  /** Creates a task like an earlier release, which computed a different next fire. */
  async function createdBefore(
    taskId: string,
    fields: Partial<TaskDefinition>,
    next_fire_at: string,
  ): Promise<void> {
    const data = { definition: definition(fields), anchor: toIso(START), next_fire_at };
    await plant(world, `task-${taskId}`, [{ type: 'TaskCreated', data }]);
  }

  const corrections = async (taskId: string): Promise<readonly (string | null)[]> =>
    (await world.events(`fires-${taskId}`)).flatMap((event) =>
      event.type === 'NextFireCorrected' ? [event.data.next_fire_at] : [],
    );

  it('corrects every next fire in its first pass, also in UTC', async () => {
    await createdBefore('sundays', sundays, toIso(START + day));
    await createdBefore('elapsed', elapsed, toIso(START + 6.5 * hour));
    await createdBefore('right', { schedule_expr: '0 9 * * *' }, toIso(START + 9 * hour));
    const audited = new AuditedProcess(world, await world.start('one'));
    const before = `${tzVersion()}, ICU ${process.versions['icu'] ?? 'unknown'}`;
    const { leadership } = audited.process;
    await world.coordination.remember('tz-database', before, leadership.fence);
    await audited.pass();
    expect(await corrections('sundays')).to.deep.equal([toIso(START + 6 * day)]);
    expect(await corrections('elapsed')).to.deep.equal([toIso(START + 5.5 * hour)]);
    expect(await corrections('right')).to.deep.equal([]);
    expect(await world.coordination.recall('tz-database')).to.equal(`${before}, rules 2`);
    await world.clock.advance(7 * day);
    expect((await world.outcome('sundays')).fired).to.deep.equal([toIso(START + 6 * day)]);
    const { fired } = await world.outcome('elapsed');
    const times = Array.from({ length: 7 }, (_, n) => toIso(START + n * day + 5.5 * hour));
    expect(fired).to.deep.equal(times);
  });

  it('does not fire at the old time before the first pass', async () => {
    await createdBefore('sundays', sundays, toIso(START + day));
    await world.start('one');
    await world.clock.advance(2 * day);
    expect((await world.outcome('sundays')).fired).to.deep.equal([]);
    expect(await corrections('sundays')).to.deep.equal([toIso(START + 6 * day)]);
  });

  for (const [name, timezone, at] of [
    ['a day', 'UTC', 0],
    ['23 hours', 'America/New_York', 3 * hour],
  ] as const) {
    it(`skips no Sunday because the earlier release fired ${name}`, async () => {
      // On the last Saturday before the clocks of New York go forward.
      const saturday = Date.UTC(2026, 2, 7) + (timezone === 'UTC' ? 0 : 5 * hour) + at;
      const sunday = saturday + (timezone === 'UTC' ? 24 : 23) * hour;
      const schedule_expr = `0 ${at / hour} * * 7-7`;
      await createdBefore('sundays', { schedule_expr, timezone }, toIso(saturday));
      await world.clock.advance(saturday + minute - world.clock.now());
      await plant(world, 'fires-sundays', [
        {
          type: 'Fired',
          data: {
            nominal: toIso(saturday),
            run_id: scheduledRunId('sundays', toIso(saturday)),
            next_fire_at: toIso(sunday),
            fire_count: 1,
            task_revision: 0,
          },
        },
      ]);
      const audited = new AuditedProcess(world, await world.start('one'));
      await audited.pass();
      await world.clock.advance(day);
      expect((await world.outcome('sundays')).fired).to.deep.equal([
        toIso(saturday),
        toIso(sunday),
      ]);
    });
  }

  it('checks all tasks once', async () => {
    await createdBefore('sundays', sundays, toIso(START + day));
    const audited = new AuditedProcess(world, await world.start('one'));
    await audited.pass();
    const { findings } = await audited.pass();
    expect(findings).to.deep.equal({});
    expect(await corrections('sundays')).to.have.length(1);
  });
});
