import { expect } from 'chai';
import { tasksProjection, type TaskDocument } from '../../../projections/views/tasks.ts';
import { topicsProjection } from '../../../projections/views/topics.ts';
import { LogOfTest, definition, folded } from '../recorded.ts';

const anchor = '2026-03-01T08:00:00.000Z';
const first = '2026-03-01T09:00:00.000Z';
const second = '2026-03-02T09:00:00.000Z';
const third = '2026-03-03T09:00:00.000Z';

function taskOf(log: LogOfTest): TaskDocument | undefined {
  return folded(tasksProjection, log.events).get('1');
}

function fired(nominal: string, next: string | null, task_revision = 0, fire_count = 1) {
  return { nominal, run_id: 'run', next_fire_at: next, task_revision, fire_count };
}

describe('a task in the tasks view', () => {
  let log: LogOfTest;

  beforeEach(() => {
    log = new LogOfTest();
    log.add('task-1', 'TaskCreated', { definition: definition(), anchor, next_fire_at: first });
  });

  it('is its definition with its state once it is created', () => {
    expect(taskOf(log)).to.deep.include({
      ...definition(),
      id: '1',
      status: 'active',
      created_at: '2026-03-01T08:00:01.000Z',
      updated_at: '2026-03-01T08:00:01.000Z',
      next_run_at: first,
      exhausted: false,
      revision: 0,
    });
  });

  it('knows the secrets in its present pipeline', () => {
    const naming = (...names: readonly string[]) => ({
      params: { note: '${secrets.ELSEWHERE}' },
      pipeline: names.map((name) => ({ uses: 'http.request', with: `\${secrets.${name}}` })),
    });
    const changeTo = (changes: object): void => {
      log.add('task-1', 'TaskUpdated', {
        changes,
        rescheduled: false,
        anchor,
        next_fire_at: first,
      });
    };
    expect(taskOf(log)).not.to.have.property('secrets');
    changeTo({ payload: naming('A', 'B', 'A') });
    expect(taskOf(log)?.secrets).to.deep.equal(['A', 'B']);
    changeTo({ title: 'Sweep again' });
    expect(taskOf(log)?.secrets).to.deep.equal(['A', 'B']);
    changeTo({ payload: naming() });
    expect(taskOf(log)).not.to.have.property('secrets');
    const created = definition({ payload: naming('C') });
    log.add('task-2', 'TaskCreated', { definition: created, anchor, next_fire_at: first });
    expect(folded(tasksProjection, log.events).get('2')?.secrets).to.deep.equal(['C']);
  });

  it('moves its next run with each fire, without counting as changed', () => {
    log.add('fires-1', 'Fired', fired(first, second));
    expect(taskOf(log)).to.deep.include({
      next_run_at: second,
      revision: 0,
      updated_at: '2026-03-01T08:00:01.000Z',
    });
  });

  it('is exhausted when no fire is ahead, and no longer when it gets a new schedule', () => {
    log.add('fires-1', 'Fired', fired(first, null));
    expect(taskOf(log)).to.deep.include({ next_run_at: null, exhausted: true });
    const changes = { schedule_expr: '0 9 2 * *', title: 'Sweep again' };
    log.add('task-1', 'TaskUpdated', { changes, rescheduled: true, anchor, next_fire_at: second });
    expect(taskOf(log)).to.deep.include({
      ...changes,
      next_run_at: second,
      exhausted: false,
      revision: 1,
      updated_at: '2026-03-01T08:00:03.000Z',
    });
  });

  it('never counts as exhausted when it waits for events', () => {
    const waiting = definition({ schedule_kind: 'event', schedule_expr: null });
    log.add('task-2', 'TaskCreated', { definition: waiting, anchor, next_fire_at: null });
    const task = folded(tasksProjection, log.events).get('2');
    expect(task).to.deep.include({ next_run_at: null, exhausted: false });
  });

  it('has no next run while it is paused, and gets one from the resume', () => {
    log.add('task-1', 'TaskPaused', { by_failures: false });
    expect(taskOf(log)).to.deep.include({ status: 'paused', next_run_at: null, exhausted: false });
    log.add('task-1', 'TaskResumed', { missed: 'skip', next_fire_at: third });
    expect(taskOf(log)).to.deep.include({ status: 'active', next_run_at: third, revision: 2 });
  });

  it('runs later when it is snoozed, and on time again after that fire', () => {
    const later = '2026-03-01T09:30:00.000Z';
    const snooze = { delay_seconds: 1800, next_fire_at: first, next_run_at: later };
    log.add('task-1', 'TaskSnoozed', snooze);
    expect(taskOf(log)?.next_run_at).to.equal(later);
    log.add('fires-1', 'Fired', fired(first, second, 1));
    expect(taskOf(log)?.next_run_at).to.equal(second);
  });

  it('ignores the next time of a fire that was decided on an older schedule', () => {
    log.add('task-1', 'TaskUpdated', {
      changes: {},
      rescheduled: true,
      anchor,
      next_fire_at: third,
    });
    log.add('fires-1', 'Fired', fired(first, second, 0));
    expect(taskOf(log)?.next_run_at).to.equal(third);
  });

  it('stays readable when it is canceled', () => {
    log.add('task-1', 'TaskCanceled', {});
    expect(taskOf(log)).to.deep.include({
      status: 'canceled',
      next_run_at: null,
      exhausted: false,
    });
  });

  it('is not changed by evolving: each document is a new one', () => {
    const [created] = log.events;
    const before = tasksProjection.evolve(null, created!, '1');
    const copy = structuredClone(before);
    tasksProjection.evolve(before, log.add('fires-1', 'Fired', fired(first, second)), '1');
    expect(before).to.deep.equal(copy);
  });
});

describe('the topics view', () => {
  it('lists the active event tasks that listen, by pattern', () => {
    const log = new LogOfTest();
    const listen = (id: string, schedule_expr: string | null): void => {
      const waiting = definition({ schedule_kind: 'event', schedule_expr });
      log.add(`task-${id}`, 'TaskCreated', { definition: waiting, anchor, next_fire_at: null });
    };
    listen('b', 'orders.*');
    listen('a', 'orders.*');
    listen('c', null);
    listen('d', 'gone');
    log.add('task-d', 'TaskPaused', { by_failures: false });
    log.add('task-e', 'TaskCreated', { definition: definition(), anchor, next_fire_at: first });
    const listening = [...folded(topicsProjection, log.events).values()].filter(
      (task) => task.listening,
    );
    const found = listening.map(({ task_id, pattern }) => `${task_id} ${pattern}`);
    expect(found).to.have.members(['a orders.*', 'b orders.*', 'c #']);
  });

  it('follows a task that becomes an event task, changes its pattern and is canceled', () => {
    const log = new LogOfTest();
    const task = () => folded(topicsProjection, log.events).get('1');
    log.add('task-1', 'TaskCreated', { definition: definition(), anchor, next_fire_at: first });
    expect(task()?.listening).to.equal(false);
    const changes = { schedule_kind: 'event', schedule_expr: 'a.#' } as const;
    log.add('task-1', 'TaskUpdated', { changes, rescheduled: true, anchor, next_fire_at: null });
    expect(task()).to.deep.include({ listening: true, pattern: 'a.#' });
    log.add('task-1', 'TaskUpdated', {
      changes: { schedule_expr: null },
      rescheduled: true,
      anchor,
      next_fire_at: null,
    });
    expect(task()?.pattern).to.equal('#');
    log.add('task-1', 'TaskCanceled', {});
    expect(task()).to.equal(undefined);
  });
});
