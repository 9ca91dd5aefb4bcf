import { expect } from 'chai';
import type { TaskEvent } from '../../../domain/events/catalogue.ts';
import {
  anchorAt,
  cancelTask,
  createTask,
  pauseTask,
  requireTask,
  resumeTask,
  snoozeTask,
  taskFold,
  updateTask,
} from '../../../domain/tasks/task.ts';
import { definition } from '../../projections/recorded.ts';
import { given, refused } from '../given.ts';

const anchor = '2026-03-02T08:00:00.000Z';
const nine = '2026-03-02T09:00:00.000Z';
const ten = '2026-03-02T10:00:00.000Z';
const created: TaskEvent = {
  type: 'TaskCreated',
  data: { definition: definition(), anchor, next_fire_at: nine },
};
const paused: TaskEvent = { type: 'TaskPaused', data: { by_failures: false } };
const resumed: TaskEvent = { type: 'TaskResumed', data: { missed: 'skip', next_fire_at: ten } };
const canceled: TaskEvent = { type: 'TaskCanceled', data: {} };
const snoozed: TaskEvent = {
  type: 'TaskSnoozed',
  data: { delay_seconds: 60, next_fire_at: nine, next_run_at: '2026-03-02T09:01:00.000Z' },
};

describe('a task', () => {
  describe('that does not exist', () => {
    const state = given(taskFold, []);

    it('is created', () => {
      expect(createTask(state, definition(), { anchor, next_fire_at: nine })).to.deep.equal([
        created,
      ]);
    });

    it('can be neither changed, paused, resumed, canceled nor snoozed', () => {
      refused('NOT_FOUND', () => updateTask(state, { title: 'x' }, null));
      refused('NOT_FOUND', () => pauseTask(state));
      refused('NOT_FOUND', () => resumeTask(state, 'skip', null));
      refused('NOT_FOUND', () => cancelTask(state));
      refused('NOT_FOUND', () => snoozeTask(state, 60, nine));
    });
  });

  describe('that is active', () => {
    const state = given(taskFold, [created]);

    it('is not created again', () => {
      refused('STATE_CONFLICT', () =>
        createTask(state, definition(), { anchor, next_fire_at: nine }),
      );
    });

    it('changes only what differs, by value', () => {
      const changes = { title: 'Mop', tags: [], payload: { pipeline: [] }, priority: 5 };
      expect(updateTask(state, changes, null)).to.deep.equal([
        {
          type: 'TaskUpdated',
          data: { changes: { title: 'Mop' }, rescheduled: false, anchor, next_fire_at: nine },
        },
      ]);
      expect(updateTask(state, definition(), null)).to.deep.equal([]);
    });

    it('keeps its schedule when something else changes', () => {
      const after = requireTask(
        given(taskFold, [
          created,
          snoozed,
          {
            type: 'TaskUpdated',
            data: { changes: { title: 'Mop' }, rescheduled: false, anchor, next_fire_at: ten },
          },
        ]),
      );
      expect(after).to.include({ next_fire_at: nine, schedule_revision: 1, revision: 2 });
      expect(after.next_run_at).to.equal('2026-03-02T09:01:00.000Z');
    });

    it('takes a new schedule, which drops a snooze', () => {
      const [event] = updateTask(
        state,
        { schedule_expr: '0 10 * * *' },
        { anchor: ten, next_fire_at: ten },
      );
      const after = requireTask(given(taskFold, [created, snoozed, event as TaskEvent]));
      expect(after).to.include({
        anchor: ten,
        next_fire_at: ten,
        next_run_at: null,
        schedule_revision: 2,
      });
    });

    it('is paused, by a person or by failures', () => {
      expect(pauseTask(state)).to.deep.equal([paused]);
      expect(pauseTask(state, true)).to.deep.equal([
        { type: 'TaskPaused', data: { by_failures: true } },
      ]);
    });

    it('has nothing to resume', () => {
      expect(resumeTask(state, 'all', ten)).to.deep.equal([]);
    });

    it('is snoozed: its next fire keeps its nominal time and runs later', () => {
      expect(snoozeTask(state, 60, nine)).to.deep.equal([snoozed]);
    });

    it('adds up repeated snoozes of the same fire', () => {
      const [event] = snoozeTask(given(taskFold, [created, snoozed]), 30, nine);
      expect(event?.data).to.deep.equal({
        delay_seconds: 30,
        next_fire_at: nine,
        next_run_at: '2026-03-02T09:01:30.000Z',
      });
    });

    it('starts over when another fire is snoozed', () => {
      const [event] = snoozeTask(given(taskFold, [created, snoozed]), 30, ten);
      expect(event?.data).to.include({ next_run_at: '2026-03-02T10:00:30.000Z' });
    });

    it('is not snoozed without a future fire', () => {
      refused('STATE_CONFLICT', () => snoozeTask(state, 60, null));
    });

    it('is canceled', () => {
      expect(cancelTask(state)).to.deep.equal([canceled]);
    });
  });

  describe('that is paused', () => {
    const state = given(taskFold, [created, paused]);

    it('is resumed, with a policy for the missed fires', () => {
      expect(resumeTask(state, 'skip', ten)).to.deep.equal([resumed]);
      const after = requireTask(given(taskFold, [created, paused, resumed]));
      expect(after).to.include({ status: 'active', next_fire_at: ten, schedule_revision: 2 });
    });

    it('is changed and canceled, and paused once more without effect', () => {
      expect(pauseTask(state)).to.deep.equal([]);
      expect(updateTask(state, { title: 'Mop' }, null)).to.have.lengthOf(1);
      expect(cancelTask(state)).to.deep.equal([canceled]);
    });

    it('is not snoozed', () => {
      expect(refused('STATE_CONFLICT', () => snoozeTask(state, 60, nine)).details).to.deep.equal({
        status: 'paused',
      });
    });
  });

  describe('that is canceled', () => {
    const state = given(taskFold, [created, canceled]);

    it('stays canceled', () => {
      expect(cancelTask(state)).to.deep.equal([]);
      expect(requireTask(state)).to.include({ next_fire_at: null, next_run_at: null });
      refused('STATE_CONFLICT', () =>
        createTask(state, definition(), { anchor, next_fire_at: nine }),
      );
      refused('STATE_CONFLICT', () => updateTask(state, { title: 'x' }, null));
      refused('STATE_CONFLICT', () => pauseTask(state));
      refused('STATE_CONFLICT', () => resumeTask(state, 'skip', ten));
      refused('STATE_CONFLICT', () => snoozeTask(state, 60, nine));
    });
  });

  it('anchors its rule at the second', () => {
    expect(anchorAt(Date.parse('2026-03-02T08:00:00.987Z'))).to.equal(anchor);
  });
});
