import { expect } from 'chai';
import { tzVersion } from '../../../domain/schedule/zone.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { minute, World } from '../scheduler-world.ts';

const day = 24 * 60 * minute;
const berlin = { timezone: 'Europe/Berlin' } as const;
const rrule = { schedule_kind: 'rrule' } as const;

describe('the version of the tz database in decisions', () => {
  let world: World;
  beforeEach(async () => {
    world = await World.open();
  });
  afterEach(() => world.close());

  /** Types and versions of a scheduler's decisions about a task in two days, on one of which it was down. */
  const decisionsOf = async (fields: Partial<TaskDefinition>): Promise<readonly unknown[]> => {
    await world.createTask('t', { misfire_policy: 'skip', ...fields });
    await world.clock.advance(day + 60 * minute);
    await world.start('one');
    await world.clock.advance(day);
    const events = await world.events('fires-t');
    return events.map(({ type, metadata }) => [type, metadata.tzVersion]);
  };
  const both = (version: string | undefined): readonly unknown[] => [
    ['FiresSkipped', version],
    ['Fired', version],
  ];

  it('is recorded for cron in a time zone, also for skipped spans', async () => {
    const decisions = await decisionsOf({ ...berlin, schedule_expr: '0 9 * * *' });
    expect(decisions).to.deep.equal(both(tzVersion()));
    expect(tzVersion()).to.match(/^\d{4}[a-z]+$/);
  });

  it('is recorded for an rrule in a time zone, of the task or its own', async () => {
    const rule = {
      ...rrule,
      ...berlin,
      schedule_expr: 'FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0',
    };
    expect(await decisionsOf(rule)).to.deep.equal(both(tzVersion()));
  });

  it('is recorded for an rrule in UTC whose DTSTART has a time zone', async () => {
    const schedule_expr = 'DTSTART;TZID=Europe/Berlin:20260301T090000\nRRULE:FREQ=DAILY';
    expect(await decisionsOf({ ...rrule, schedule_expr })).to.deep.equal(both(tzVersion()));
  });

  it('is left out in UTC', async () => {
    expect(await decisionsOf({ schedule_expr: '0 9 * * *' })).to.deep.equal(both(undefined));
  });

  it('is left out for an rrule in UTC', async () => {
    const rule = { ...rrule, schedule_expr: 'FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0' };
    expect(await decisionsOf(rule)).to.deep.equal(both(undefined));
  });

  it('is left out for a single time', async () => {
    const once = { ...berlin, schedule_kind: 'once', schedule_expr: '2026-03-03T20:00' } as const;
    expect(await decisionsOf(once)).to.deep.equal([['Fired', undefined]]);
  });

  it('is not recorded in the runs', async () => {
    await decisionsOf({ ...berlin, schedule_expr: '0 9 * * *' });
    const runs = await world.events('run-');
    expect(runs.map(({ metadata }) => metadata.tzVersion)).to.deep.equal([undefined]);
  });
});
