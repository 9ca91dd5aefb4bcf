import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { toIso } from '../../../../domain/clock.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import {
  expectReason,
  expectWords,
  ExplainedWorld,
  hour,
  minute,
  patternOf,
  typesIn,
} from './explaining.ts';
import { leaveOut } from '../../../support/left-out.ts';

/** Every minute, every hour. */
const minutely = { schedule_expr: '* * * * *' };

describe('an explanation', () => {
  const api = useRunningApi();
  let world: ExplainedWorld;
  before(async () => {
    world = await ExplainedWorld.open(api(), '2027-02-01T07:30:00.000Z');
  });

  it('of a fire names its run and the result', async () => {
    const task = await world.create();
    const at = world.nextHour;
    const [run = ''] = await world.until(at + 20).decide(task);
    await world.work(task, run, 3);
    const answer = await world.explain(task, at);
    expectReason(answer, 'fired', true);
    expectWords(answer, at, run, 'succeeded');
    const { evidence, message, ...rest } = answer.json;
    expect(rest).to.deep.equal({
      task_id: task,
      at: toIso(at),
      fired: true,
      reason: 'fired',
      run_id: run,
      previous_fire: null,
      next_fire: toIso(at + hour),
    });
    expect(message).to.be.a('string');
    const [first] = evidence as Record<string, unknown>[];
    expect(first).to.have.all.keys(
      ...['stream', 'revision', 'position', 'event_id', 'type', 'at', 'actor', 'reason'],
    );
    expect(typesIn(answer)).to.deep.equal(['Fired', 'RunRequested', 'RunSucceeded']);
  });

  it('prefers the fire of the requested second', async () => {
    const task = await world.create();
    const at = world.nextHour;
    await world.until(at + 20).decide(task);
    expectReason(await world.explain(task, at + 999), 'fired', true);
    expectReason(await world.explain(task, at + 1000), 'not_in_schedule');
    expectReason(await world.explain(task, at - 1), 'not_in_schedule');
  });

  it('of an instant between two fires names the nearest', async () => {
    const task = await world.create();
    const at = world.nextHour;
    const [run = ''] = await world.until(at + 20).decide(task);
    world.until(at + 20 * minute);
    const answer = await world.explain(task, at + 10 * minute);
    expectReason(answer, 'not_in_schedule');
    expectWords(answer, at + 10 * minute, at, at + hour, run, '0 * * * *');
    expect(answer.at('previous_fire')).to.equal(toIso(at));
    expect(answer.at('next_fire')).to.equal(toIso(at + hour));
    expect(answer.at('run_id')).to.equal(null);
  });

  it('of missed fires says how long no scheduler ran, and what ran instead', async () => {
    const task = await world.create(minutely);
    const at = world.nextHour;
    await world.until(at + 20).decide(task);
    const [run = ''] = await world.until(at + 3 * hour + 30_000).decide(task);
    const answer = await world.explain(task, at + hour);
    expectReason(answer, 'missed');
    expectWords(answer, at + hour, '2 h 59 min', 'misfire_policy latest', 'grace of 1 min');
    expect(answer.at('previous_fire')).to.equal(toIso(at + hour - minute));
    expect(answer.at('next_fire')).to.equal(toIso(at + hour + minute));
    expect(typesIn(answer)).to.include('FiresSkipped');
    const last = await world.explain(task, at + 3 * hour);
    expectReason(last, 'fired', true);
    expect(last.at('run_id')).to.equal(run);
    expectWords(last, '30 s late');
  });

  it('of a fire that a hold delayed says who ordered it', async () => {
    const task = await world.create(minutely);
    const at = world.nextHour;
    await world.until(at - minute + 20).decide(task);
    const { client } = world.person;
    await client.post('/operations/hold', { reason: 'moving the mail server' });
    world.until(at + 10 * minute);
    const due = await world.explain(task, at);
    expectReason(due, null);
    expectWords(due, 'put the service on hold at', 'moving the mail server', 'ada');
    await client.post('/operations/release', { missed: 'skip' });
    await world.decide(task);
    const missed = await world.explain(task, at);
    expectReason(missed, 'missed');
    expectWords(missed, 'the service was on hold', 'moving the mail server', 'missed=skip');
    expect(typesIn(missed)).to.deep.equal(['OperationsHeld', 'OperationsReleased', 'FiresSkipped']);
  });

  it('of a fire that a pause delays says who paused it, when and why', async () => {
    const task = await world.create();
    const at = world.nextHour;
    await world.until(at - 10 * minute).command(task, 'pause', undefined, 'the database moves');
    world.until(at + 5 * minute);
    const held = await world.explain(task, at);
    expectReason(held, 'paused');
    expectWords(held, 'ada', world.person.id, 'the database moves', 'holds back');
    expect(typesIn(held)).to.deep.equal(['TaskPaused']);
    const ahead = await world.explain(task, at + hour);
    expectReason(ahead, 'paused');
    expectWords(ahead, 'still to come');
    await world.command(task, 'resume', undefined, 'it has moved');
    const undecided = await world.explain(task, at);
    expectReason(undecided, 'paused');
    expectWords(undecided, 'missed=skip');
    await world.decide(task);
    const skipped = await world.explain(task, at);
    expectReason(skipped, 'paused');
    expectWords(skipped, 'the database moves', 'it has moved', 'missed=skip');
    expect(typesIn(skipped)).to.deep.equal(['TaskPaused', 'TaskResumed', 'FiresSkipped']);
  });

  it('of a fire that ran after a resume says that it was delayed', async () => {
    const task = await world.create();
    const at = world.nextHour;
    await world.until(at - 10 * minute).command(task, 'pause');
    await world.until(at + 5 * minute).command(task, 'resume?missed=latest');
    const [run] = await world.until(at + 6 * minute).decide(task);
    const answer = await world.explain(task, at);
    expectReason(answer, 'fired', true);
    expect(answer.at('run_id')).to.equal(run);
    expectWords(answer, '6 min late', 'missed=latest');
  });

  it('of a pause after failures says so', async () => {
    const task = await world.create();
    const at = world.nextHour;
    await api().append(`task-${task}`, [{ type: 'TaskPaused', data: { by_failures: true } }]);
    world.until(at + minute);
    const answer = await world.explain(task, at);
    expectReason(answer, 'paused');
    expectWords(answer, 'after too many failures');
  });

  it('of snoozed fires says for how long, and which do not run', async () => {
    const task = await world.create(minutely);
    const at = world.nextHour;
    await world.until(at - minute + 20).decide(task);
    await world.command(task, 'snooze', { delay_seconds: 150, reason: 'lunch' });
    world.until(at + 30_000);
    const own = await world.explain(task, at);
    expectReason(own, 'snoozed');
    expectWords(own, '2 min 30 s', 'lunch', at + 150_000);
    expectReason(await world.explain(task, at + minute), 'snoozed');
    const [run] = await world.until(at + 150_020).decide(task);
    const ran = await world.explain(task, at);
    expectReason(ran, 'fired', true);
    expect(ran.at('run_id')).to.equal(run);
    expectWords(ran, '2 min 30 s', 'lunch');
    const between = await world.explain(task, at + 2 * minute);
    expectReason(between, 'snoozed');
    expectWords(between, at, at + 2 * minute, 'lunch');
    const runs = await world.explain(task, at + 150_000);
    expectReason(runs, 'not_in_schedule');
    expectWords(runs, 'until this instant');
  });

  it('of a fire that was snoozed beyond a pause names the snooze, not the pause', async () => {
    const task = await world.create();
    const at = world.nextHour;
    await world.command(task, 'snooze', { delay_seconds: 9000, reason: 'lunch' });
    await world.until(at - minute).command(task, 'pause');
    await world.until(at + 90 * minute).command(task, 'resume');
    const own = await world.explain(task, at);
    expectReason(own, 'snoozed');
    expectWords(own, '2 h 30 min', 'lunch', at + 150 * minute);
    expect(await world.decide(task)).to.deep.equal([]);
    await world.until(at + 150 * minute + 20).decide(task);
    const ran = await world.explain(task, at);
    expectReason(ran, 'fired', true);
    expectWords(ran, '2 h 30 min', 'lunch');
    expect(ran.textAt('message')).not.to.contain('paused');
    expectReason(await world.explain(task, at + hour), 'snoozed');
  });

  it('of a fire out of bounds names the bound', async () => {
    const at = world.nextHour;
    const starts_at = toIso(at + hour);
    const ends_at = toIso(at + 2 * hour);
    const task = await world.create({ starts_at, ends_at });
    const early = await world.explain(task, at);
    expectReason(early, 'bounds');
    expectWords(early, 'starts_at', at + hour);
    expect(early.at('previous_fire')).to.equal(null);
    expect(early.at('next_fire')).to.equal(starts_at);
    const late = await world.explain(task, at + 3 * hour);
    expectReason(late, 'bounds');
    expectWords(late, 'ends_at', at + 2 * hour);
    expect(late.at('previous_fire')).to.equal(ends_at);
    expect(late.at('next_fire')).to.equal(null);
  });

  it('of a fire beyond max_runs says that they are used up', async () => {
    const at = world.nextHour;
    const task = await world.create({ ...minutely, max_runs: 2 });
    for (let fire = at; fire < at + 4 * minute; fire += minute) {
      await world.until(fire + 20).decide(task);
    }
    const answer = await world.explain(task, at + 3 * minute);
    expectReason(answer, 'bounds');
    expectWords(answer, 'max_runs is 2, and 2 fires had used that up');
    expect(answer.at('next_fire')).to.equal(null);
  });

  it('of a fire that another run prevented names that run', async () => {
    const task = await world.create({ overlap_policy: 'skip' });
    const at = world.nextHour;
    const [first = ''] = await world.until(at + 20).decide(task);
    const leased_until = toIso(at + hour);
    const start = { worker: 'w', attempt: 1, leased_until };
    await world.append(first, { type: 'RunStarted', data: start });
    const [second] = await world.until(at + hour + 20).decide(task);
    const answer = await world.explain(task, at + hour);
    expectReason(answer, 'overlap');
    expect(answer.at('run_id')).to.equal(second);
    expectWords(answer, first, 'overlap_policy: skip', 'has been running since');
    expect(typesIn(answer)).to.include.members(['Fired', 'RunSkipped', 'RunStarted']);
  });

  it('of a duplicate names the original run, even of another task', async () => {
    const dedupe = { dedupe_key: 'report', dedupe_window_seconds: 7200 };
    const [one, other] = [await world.create(dedupe), await world.create(dedupe)];
    const at = world.nextHour;
    const [first = ''] = await world.until(at + 20).decide(one);
    await world.work(one, first, 2, 'no such report');
    await world.decide(other);
    const answer = await world.explain(other, at);
    expectReason(answer, 'duplicate');
    expectWords(answer, first, '"report"', '2 h', one, 'no such report');
  });

  it('of a run says so if its task was paused before it started', async () => {
    const task = await world.create();
    const at = world.nextHour;
    const [run = ''] = await world.until(at + 20).decide(task);
    await world.command(task, 'pause', undefined, 'wait');
    const held = await world.explain(task, at);
    expectReason(held, 'fired', true);
    expectWords(held, 'paused the task at', 'wait', 'unless the task is resumed before');
    const request = { task_id: task, task_revision: 0, created_by: world.person.id, priority: 5 };
    const data = { ...request, trigger: 'schedule' as const, scheduled_for: toIso(at) };
    await world.append(run, {
      type: 'RunSkipped',
      data: { ...data, reason: 'paused', because_of: null },
    });
    const answer = await world.explain(task, at);
    expectReason(answer, 'paused');
    expectWords(answer, 'before the run started', 'wait');
  });

  it('of an instant before the creation or after the cancellation says so', async () => {
    const task = await world.create();
    const at = world.nextHour;
    const before = await world.explain(task, at - hour);
    expectReason(before, 'not_in_schedule');
    expectWords(before, 'did not exist', 'ada');
    expect(before.at('next_fire')).to.equal(toIso(at));
    await world.command(task, 'cancel', undefined, 'no longer wanted');
    const after = await world.explain(task, at);
    expectReason(after, 'not_in_schedule');
    expectWords(after, 'canceled', 'ada', 'no longer wanted');
    expect(after.at('next_fire')).to.equal(null);
  });

  it('of a future or undecided fire has no reason', async () => {
    const task = await world.create();
    const at = world.nextHour;
    const ahead = await world.explain(task, at + hour);
    expectReason(ahead, null);
    expectWords(ahead, 'still to come');
    expect(ahead.at('previous_fire')).to.equal(toIso(at));
    world.until(at + 5_000);
    const due = await world.explain(task, at);
    expectReason(due, null);
    expectWords(due, 'has been due for', 'still undecided', 'No scheduler');
  });

  it('of a future fire mentions the jitter, which ends before the next fire', async () => {
    const task = await world.create({ ...minutely, jitter_seconds: 3600 });
    const ahead = await world.explain(task, world.nextHour);
    expectWords(ahead, 'still to come', 'up to 1 min later (jitter)');
  });

  it('applies the schedule in force at that instant', async () => {
    const task = await world.create();
    const at = world.nextHour;
    await world.until(at + 20).decide(task);
    const changed = { schedule_expr: '30 * * * *' };
    await world.until(at + hour - minute).person.client.put(`/tasks/${task}`, changed);
    world.until(at + 2 * hour);
    const old = await world.explain(task, at + 30 * minute);
    expectReason(old, 'not_in_schedule');
    expectWords(old, '0 * * * *');
    expectWords(await world.explain(task, at + hour - 2 * minute), 'changed the schedule at');
    expect(old.at('next_fire')).to.equal(toIso(at + 90 * minute));
    const kept = await world.explain(task, at);
    expectReason(kept, 'fired', true);
    const dropped = await world.explain(task, at + hour);
    expectReason(dropped, 'not_in_schedule');
    expectWords(dropped, '30 * * * *', 'set that schedule at', 'ada');
    expect(dropped.at('previous_fire')).to.equal(toIso(at));
  });

  it("reads an instant without an offset in the task's time zone, and answers in it", async () => {
    const task = await world.create({ schedule_expr: '0 2 * * *', timezone: 'Europe/Berlin' });
    const answer = await world.explain(task, '2027-03-28T02:00:00');
    expect(answer.at('at')).to.equal('2027-03-28T01:00:00.000Z');
    expectReason(answer, null);
    expectWords(answer, '2027-03-28T03:00:00+02:00', 'does not exist in Europe/Berlin');
    const plain = await world.person.client.get(
      `/tasks/${task}/explain?at=2027-03-28T02:00:00+01:00`,
    );
    expect(plain.at('at')).to.equal('2027-03-28T01:00:00.000Z');
  });

  it('of an event task names the event that triggered it around that instant', async () => {
    const task = await world.create({ schedule_kind: 'event', schedule_expr: 'orders.*' });
    const at = world.nextHour + 5_000;
    const run = await world.until(at).trigger(task, 'orders.created');
    // Makes the read wait until the view includes the run.
    await world.person.client.post('/agents', { name: `after ${run}`, scopes: [] });
    world.until(at + 5 * minute);
    const answer = await world.explain(task, at - 30_000);
    expectReason(answer, 'fired', true);
    expect(answer.at('run_id')).to.equal(run);
    expectWords(answer, 'orders.created', run);
    const none = await world.explain(task, at + 2 * minute);
    expectReason(none, 'not_in_schedule');
    expectWords(none, 'orders.*', 'within 1 min');
    await world.command(task, 'pause', undefined, 'stocktaking');
    const paused = await world.explain(task, at + 6 * minute);
    expectReason(paused, 'paused');
    expectWords(paused, 'stocktaking');
  });

  it('names manual runs near an instant without a due fire', async () => {
    const task = await world.create();
    const at = world.nextHour + 5 * minute;
    const manual = await world.until(at).command(task, 'run_now');
    const answer = await world.explain(task, at + 20_000);
    expectReason(answer, 'not_in_schedule');
    expectWords(answer, manual.textAt('details.run_id'), 'manually');
    expect(typesIn(answer)).to.include('RunRequested');
  });

  it('does not depend on the views', async () => {
    const task = await world.create();
    const at = world.nextHour;
    await world.until(at + 20).decide(task);
    api().views.away = true;
    try {
      expectReason(await world.explain(task, at), 'fired', true);
      const between = await world.explain(task, at + minute);
      expectReason(between, 'not_in_schedule');
      expectWords(between, 'could not be looked up');
    } finally {
      api().views.away = false;
    }
  });

  it('matches docs/reference/explain.md for each situation, except ids, instants and numbers', async function () {
    // Of the situations above: without them there is nothing to compare.
    if (world.said.length < 30)
      leaveOut(this, 'docs/reference/explain.md: run all tests of explain.test.ts');
    const page = await readFile(
      new URL('../../../../docs/reference/explain.md', import.meta.url),
      'utf8',
    );
    const shown = Array.from(page.matchAll(/"message": ?("(?:[^"\\]|\\.)*")/g), ([, text = '']) =>
      patternOf(JSON.parse(text) as string),
    );
    expect(shown).to.have.length.at.least(12);
    const said = new Set(world.said.map(patternOf));
    expect(shown.filter((text) => !said.has(text))).to.deep.equal([]);
  });
});
