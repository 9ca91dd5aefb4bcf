import { expect } from 'chai';
import { decorate } from '../../../domain/decorate.ts';
import type { EventStore, StreamAppend } from '../../../domain/event-store.ts';
import { decideFires } from '../../../domain/tasks/fires.ts';
import { silent } from '../../../observability/telemetry.ts';
import { evolveScheduleStateOf } from '../../../projections/views/due.ts';
import type { DueEntry } from '../../../scheduler/fires/due-index.ts';
import { compileRule } from '../../../domain/tasks/task-schedule.ts';
import { FireWriter } from '../../../scheduler/fires/fire-writer.ts';
import { EarlyStarts } from '../../../scheduler/burst/early-starts.ts';
import type { RunExecutor } from '../../../scheduler/runs/run-executor.ts';
import type { RunQueue } from '../../../scheduler/runs/run-queue.ts';
import type { Worker } from '../../../scheduler/worker.ts';
import { MemoryLog } from '../../domain/memory-log.ts';
import { LogOfTest, definition } from '../../projections/recorded.ts';

describe("the append of a fire's decision", () => {
  const due = Date.parse('2026-03-02T00:00:00.000Z');
  let appended: readonly StreamAppend[];
  let log: EventStore;
  let writer: FireWriter;
  let entry: DueEntry;

  beforeEach(() => {
    appended = [];
    const store = decorate<EventStore>(new MemoryLog(), {
      appendInOrder: async (appends) => {
        appended = appends;
        return appends.map(({ events }) => {
          return { revision: events.length - 1, position: '1', duplicate: false };
        });
      },
    });
    log = store;
    writer = new FireWriter({ store, telemetry: silent, name: 'one' });
    const at = '2026-03-02T00:00:00.000Z';
    const created = new LogOfTest().add('task-t', 'TaskCreated', {
      definition: definition({ schedule_kind: 'once', schedule_expr: at }),
      anchor: '2026-03-01T00:00:00.000Z',
      next_fire_at: at,
    });
    const schedule = evolveScheduleStateOf(null, created);
    if (schedule === null) throw new Error('the task has a schedule state');
    entry = {
      taskId: 't',
      state: schedule,
      dueAt: due,
      deciding: true,
      held: null,
      retryAt: 0,
      failures: 0,
      compiled: null,
    };
  });

  /** A worker of this process takes the run. */
  const begins = (): void => {
    const run = { id: 'r', runAt: due, ended: false, state: 'running', owner: 'one' };
    const handle = { done: new Promise<null>(() => {}), abort: () => {}, onEvent: () => {} };
    const early = new EarlyStarts({
      store: log,
      queue: { draft: () => run, expect: () => true, applied: () => {} } as unknown as RunQueue,
      executor: { taskToStartAtOnce: () => ({}), continue: () => handle } as unknown as RunExecutor,
      worker: {
        mayTake: () => true,
        reserve: () => () => {},
        follow: () => {},
      } as unknown as Worker,
      membership: { id: 'one', lease: 30_000 },
      telemetry: silent,
      isInstant: () => true,
    });
    writer = new FireWriter({ store: log, telemetry: silent, name: 'one', appender: early });
  };
  const write = async (isCrowded: boolean): Promise<(boolean | undefined)[]> => {
    const { definition, anchor } = entry.state;
    const decision = decideFires('t', entry.state, compileRule(definition, anchor), due);
    await writer.write(entry, decision, { now: due, isCrowded });
    return appended.map(({ mayAnnounceLater }) => mayAnnounceLater);
  };

  it('may be announced later when many tasks are due and its run starts here', async () => {
    begins();
    expect(await write(true)).to.deep.equal([true, true]);
    expect(appended[1]?.events).to.have.lengthOf(2);
  });

  it('is announced at once when few tasks are due', async () => {
    begins();
    expect(await write(false)).to.deep.equal([false, false]);
  });

  it('is announced at once when its run starts elsewhere', async () => {
    expect(await write(true)).to.deep.equal([undefined, undefined]);
  });
});
