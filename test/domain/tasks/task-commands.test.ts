import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import { decorate } from '../../../domain/decorate.ts';
import { RefusalError } from '../../../domain/errors.ts';
import { EventStoreError, type EventStore } from '../../../domain/event-store.ts';
import type { DomainEvent, FiresEvent } from '../../../domain/events/catalogue.ts';
import { toNewEvents, type Handled } from '../../../domain/handle.ts';
import { streams } from '../../../domain/streams.ts';
import {
  cancelRunCommand,
  cancelTaskCommand,
  createTaskCommand,
  nextRunAt,
  pauseTaskCommand,
  requestManualRun,
  resumeTaskCommand,
  snoozeTaskCommand,
  updateTaskCommand,
  type TaskCommand,
} from '../../../domain/tasks/task-commands.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { requireTask, type LiveTask, type TaskState } from '../../../domain/tasks/task.ts';
import { definition } from '../../projections/recorded.ts';
import { commandContext, rejection, START } from '../given.ts';
import { MemoryLog } from '../memory-log.ts';

const minute = 60_000;

describe('commands on tasks', () => {
  let store: MemoryLog;
  let count: number;

  beforeEach(() => {
    store = new MemoryLog();
    count = 0;
  });

  const create = (fields: Partial<TaskDefinition> = {}, now = START): Promise<Handled<TaskState>> =>
    createTaskCommand({
      store,
      taskId: 't',
      definition: definition({ schedule_expr: '* * * * *', ...fields }),
      context: commandContext('create', now),
    });

  const command = (now = START, more: Partial<TaskCommand> = {}): TaskCommand => {
    count += 1;
    const context = commandContext(`c${count}`, now);
    return { store, taskId: 't', context, mayChange: () => {}, ...more };
  };

  const taskOf = ({ state }: Handled<TaskState>): LiveTask => requireTask(state);

  const fires = async (event: FiresEvent): Promise<void> => {
    const stream = streams.fires('t');
    const context = commandContext(`fires-${store.asked}`);
    await store.append(stream, toNewEvents(stream, [event], context), 'any');
  };
  const fired = (
    nominal: string,
    next_fire_at: string | null,
    task_revision: number,
  ): FiresEvent => ({
    type: 'Fired',
    data: { nominal, run_id: 'r', next_fire_at, task_revision, fire_count: 1 },
  });

  it('create one with its next fire, anchored at the second', async () => {
    const task = taskOf(await create({}, START + 1_234));
    expect(task).to.include({
      anchor: '2026-03-02T08:00:01.000Z',
      next_fire_at: '2026-03-02T08:01:00.000Z',
    });
  });

  it('do not read the stream of a new task unless it already exists', async () => {
    const made = definition({ schedule_expr: '* * * * *' });
    const createNew = (id: string): Promise<Handled<TaskState>> => {
      const context = commandContext(id, START);
      return createTaskCommand({ store, taskId: 't', definition: made, context, isNew: true });
    };
    let reads = 0;
    const read = store.readStream.bind(store);
    store.readStream = (...asked) => {
      reads += 1;
      return read(...asked);
    };
    const first = await createNew('create');
    expect(reads).to.equal(0);
    expect((await createNew('create')).revision).to.equal(first.revision);
    const error = await createNew('another').catch((thrown: unknown) => thrown);
    expect(error).to.have.property('code', 'STATE_CONFLICT');
  });

  it('create it once, even if its one fire has passed when the command is repeated', async () => {
    const once = { schedule_kind: 'once', schedule_expr: '2026-03-02T08:01:00Z' } as const;
    await create(once);
    expect(taskOf(await create(once, START + 2 * minute)).next_fire_at).to.equal(
      '2026-03-02T08:01:00.000Z',
    );
    expect(store.typesOf('task-t')).to.deep.equal(['TaskCreated']);
  });

  it('refuse an invalid rule, and one without a future fire', async () => {
    for (const fields of [
      { schedule_expr: 'every day' },
      { schedule_expr: '0 0 30 2 *' },
      { timezone: 'Mars/Olympus' },
      { schedule_kind: 'once', schedule_expr: '2020-01-01T00:00:00Z' },
      { ends_at: '2020-01-01T00:00:00.000Z' },
    ] as Partial<TaskDefinition>[]) {
      const error = (await rejection(create(fields))) as RefusalError;
      expect(error, JSON.stringify(fields)).to.include({ code: 'INVALID' });
    }
    expect(store.typesOf('task-t')).to.deep.equal([]);
  });

  it('name the last fire if none is in the future', async () => {
    const rule = { schedule_kind: 'rrule', schedule_expr: 'FREQ=DAILY;COUNT=1' } as const;
    const error = (await rejection(create(rule))) as RefusalError;
    expect(error.message).to.contain('has no future fire: its last was 2026-03-02T08:00:00.000Z');
  });

  it('create event tasks without a next fire', async () => {
    const task = taskOf(await create({ schedule_kind: 'event', schedule_expr: null }));
    expect(task.next_fire_at).to.equal(null);
    expect(await rejection(snoozeTaskCommand({ ...command(), delaySeconds: 5 }))).to.include({
      code: 'STATE_CONFLICT',
    });
  });

  it('keep the anchor unless the expression changes', async () => {
    await create();
    const zone = await updateTaskCommand({
      ...command(START + minute),
      changes: { timezone: 'Europe/Berlin' },
    });
    expect(taskOf(zone).anchor).to.equal(toIso(START));
    const rule = await updateTaskCommand({
      ...command(START + minute),
      changes: { schedule_expr: '0 * * * *' },
    });
    expect(taskOf(rule)).to.include({
      anchor: toIso(START + minute),
      next_fire_at: '2026-03-02T09:00:00.000Z',
    });
  });

  it('keep the schedule when something else changes, or nothing', async () => {
    await create();
    const title = await updateTaskCommand({
      ...command(START + 10 * minute),
      changes: { title: 'Mop', schedule_expr: '* * * * *' },
    });
    expect(taskOf(title)).to.include({ schedule_revision: 0, revision: 1 });
    const nothing = await updateTaskCommand({ ...command(), changes: { title: 'Mop' } });
    expect(nothing.events).to.deep.equal([]);
  });

  it('pause, resume and cancel, each once', async () => {
    await create();
    await pauseTaskCommand(command());
    expect((await pauseTaskCommand(command())).events).to.deep.equal([]);
    const resumed = await resumeTaskCommand({ ...command(START + 5 * minute), missed: 'skip' });
    expect(taskOf(resumed)).to.include({
      status: 'active',
      next_fire_at: '2026-03-02T08:06:00.000Z',
    });
    expect((await resumeTaskCommand({ ...command(), missed: 'all' })).events).to.deep.equal([]);
    await cancelTaskCommand(command());
    expect((await cancelTaskCommand(command())).events).to.deep.equal([]);
    expect(await rejection(pauseTaskCommand(command()))).to.include({ code: 'STATE_CONFLICT' });
  });

  it('check in this order whether the task exists, may be changed, and has the revision and the state', async () => {
    const mayChange = (): void => {
      throw new RefusalError('FORBIDDEN', 'not yours');
    };
    const refusals: string[] = [];
    const note = async (more: Partial<TaskCommand>): Promise<void> => {
      const error = (await rejection(pauseTaskCommand(command(START, more)))) as RefusalError;
      refusals.push(error.code);
    };
    await note({ mayChange, expectedRevision: 9 });
    await create();
    await cancelTaskCommand(command());
    await note({ mayChange, expectedRevision: 9 });
    await note({ expectedRevision: 9 });
    await note({ expectedRevision: 1 });
    expect(refusals).to.deep.equal([
      'NOT_FOUND',
      'FORBIDDEN',
      'REVISION_MISMATCH',
      'STATE_CONFLICT',
    ]);
  });

  describe('on the next fire', () => {
    it('snooze it according to both streams', async () => {
      await create();
      await fires(fired('2026-03-02T08:01:00.000Z', '2026-03-02T08:02:00.000Z', 0));
      const snoozed = await snoozeTaskCommand({ ...command(START + minute), delaySeconds: 90 });
      expect(taskOf(snoozed)).to.include({
        next_fire_at: '2026-03-02T08:02:00.000Z',
        next_run_at: '2026-03-02T08:03:30.000Z',
      });
      expect(await nextRunAt(store, 't', taskOf(snoozed))).to.equal('2026-03-02T08:03:30.000Z');
      const again = await snoozeTaskCommand({ ...command(START + minute), delaySeconds: 30 });
      expect(taskOf(again).next_run_at).to.equal('2026-03-02T08:04:00.000Z');
    });

    it('report it after a fire, a pause and a resume', async () => {
      const created = taskOf(await create());
      expect(await nextRunAt(store, 't', created)).to.equal('2026-03-02T08:01:00.000Z');
      await fires(fired('2026-03-02T08:01:00.000Z', '2026-03-02T08:02:00.000Z', 0));
      expect(await nextRunAt(store, 't', created)).to.equal('2026-03-02T08:02:00.000Z');
      const paused = taskOf(await pauseTaskCommand(command(START + minute)));
      expect(await nextRunAt(store, 't', paused)).to.equal(null);
      const resumed = taskOf(
        await resumeTaskCommand({ ...command(START + 9 * minute), missed: 'skip' }),
      );
      expect(await nextRunAt(store, 't', resumed)).to.equal('2026-03-02T08:10:00.000Z');
    });

    it('report none once `max_runs` is used up, until it is raised', async () => {
      await create();
      await fires(fired('2026-03-02T08:01:00.000Z', '2026-03-02T08:02:00.000Z', 0));
      const update = (changes: Partial<TaskDefinition>): Promise<Handled<TaskState>> =>
        updateTaskCommand({ ...command(START + minute), changes });
      const spent = await update({ max_runs: 1 });
      expect(taskOf(spent).next_fire_at).to.equal(null);
      expect(await nextRunAt(store, 't', taskOf(spent))).to.equal(null);
      expect(taskOf(await update({ schedule_expr: '0 9 * * *' })).next_fire_at).to.equal(null);
      await pauseTaskCommand(command(START + minute));
      const resumed = await resumeTaskCommand({ ...command(START + minute), missed: 'skip' });
      expect(taskOf(resumed).next_fire_at).to.equal(null);
      const larger = await update({ max_runs: 2 });
      expect(taskOf(larger).next_fire_at).to.equal('2026-03-02T09:00:00.000Z');
    });

    it('keep it snoozed through a pause that ends before its later time', async () => {
      await create({ schedule_expr: '0 * * * *' });
      await snoozeTaskCommand({ ...command(), delaySeconds: 3600 });
      const pausedUntil = async (now: number): Promise<LiveTask> => {
        await pauseTaskCommand(command(now - minute));
        return taskOf(await resumeTaskCommand({ ...command(now), missed: 'skip' }));
      };
      const putOff = { next_fire_at: '2026-03-02T09:00:00.000Z' };
      for (const now of [START + 10 * minute, START + 90 * minute]) {
        const task = await pausedUntil(now);
        expect(task).to.include({ ...putOff, next_run_at: '2026-03-02T10:00:00.000Z' });
        expect(await nextRunAt(store, 't', task)).to.equal('2026-03-02T10:00:00.000Z');
      }
      expect(await pausedUntil(START + 120 * minute)).to.include({
        next_fire_at: '2026-03-02T11:00:00.000Z',
        next_run_at: null,
      });
    });

    it('do not bring it back if it was decided while it was being snoozed', async () => {
      const created = taskOf(await create());
      const snoozed = taskOf(await snoozeTaskCommand({ ...command(), delaySeconds: 600 }));
      await fires(fired('2026-03-02T08:01:00.000Z', '2026-03-02T08:02:00.000Z', created.revision));
      expect(await nextRunAt(store, 't', snoozed)).to.equal('2026-03-02T08:02:00.000Z');
    });
  });

  describe('on runs', () => {
    it('request a run manually, the same for the same command', async () => {
      const task = taskOf(await create());
      const first = await requestManualRun(store, 't', task, commandContext('run'));
      const again = await requestManualRun(store, 't', task, commandContext('run'));
      const other = await requestManualRun(store, 't', task, commandContext('run-2'));
      expect(again).to.deep.include({ runId: first.runId, deduplicated: false });
      expect(other.runId).to.not.equal(first.runId);
      expect(store.typesOf(streams.run(first.runId))).to.deep.equal(['RunRequested']);
    });

    it('run a paused task, but not a canceled one', async () => {
      await create();
      const paused = taskOf(await pauseTaskCommand(command()));
      expect(
        (await requestManualRun(store, 't', paused, commandContext('run'))).result,
      ).to.not.equal(null);
      const canceled = taskOf(await cancelTaskCommand(command()));
      const refused = requestManualRun(store, 't', canceled, commandContext('run-2'));
      expect(await rejection(refused)).to.include({ code: 'STATE_CONFLICT' });
    });

    it('cancel a run once', async () => {
      const task = taskOf(await create());
      const { runId } = await requestManualRun(store, 't', task, commandContext('run'));
      expect(await cancelRunCommand(store, runId, commandContext('cancel'))).to.be.a('string');
      expect(await cancelRunCommand(store, runId, commandContext('cancel-2'))).to.equal(null);
      expect(await rejection(cancelRunCommand(store, 'none', commandContext('c')))).to.include({
        code: 'NOT_FOUND',
      });
    });

    it("end a run that waits for its next attempt even if its task can't be read", async () => {
      const task = taskOf(await create({ payload: { pipeline: [{ id: 'a', uses: 'echo' }] } }));
      const ends: object[] = [];
      for (const [name, fault] of [
        ['readable', null],
        ['gone', []],
        ['broken', new EventStoreError('CORRUPT_EVENT', 'it does not fit its schema')],
      ] as const) {
        const { runId } = await requestManualRun(store, 't', task, commandContext(name));
        const stream = streams.run(runId);
        const begun: readonly DomainEvent[] = [
          {
            type: 'RunStarted',
            data: { worker: 'w', attempt: 1, leased_until: toIso(START) },
          },
          {
            type: 'RunAttemptFailed',
            data: { attempt: 1, error: 'broke', step: 'a', retry_at: toIso(START + minute) },
          },
        ];
        await store.append(stream, toNewEvents(stream, begun, commandContext(`${name} begun`)), 0);
        const log = decorate<EventStore>(store, {
          readStream: async (of, options) => {
            if (of !== streams.task('t') || fault === null) return store.readStream(of, options);
            if (fault instanceof EventStoreError) throw fault;
            return fault;
          },
        });
        await cancelRunCommand(log, runId, commandContext(`${name} canceled`));
        const [last] = await store.readStream(stream, { direction: 'backwards', limit: 1 });
        expect(last?.type).to.equal('RunCanceled');
        ends.push(last?.data ?? {});
      }
      expect(ends).to.deep.equal([
        {
          attempt: 1,
          output: { summary: { total_steps: 1, executed_steps: 0, skipped_steps: 0 } },
        },
        { attempt: 1 },
        { attempt: 1 },
      ]);
    });

    it('ask a running run to stop', async () => {
      const task = taskOf(await create());
      const { runId } = await requestManualRun(store, 't', task, commandContext('run'));
      const stream = streams.run(runId);
      const started: DomainEvent = {
        type: 'RunStarted',
        data: { worker: 'w', attempt: 1, leased_until: toIso(START) },
      };
      await store.append(stream, toNewEvents(stream, [started], commandContext('start')), 0);
      await cancelRunCommand(store, runId, commandContext('cancel'));
      expect(store.typesOf(stream)).to.deep.equal([
        'RunRequested',
        'RunStarted',
        'RunCancelRequested',
      ]);
    });
  });
});
