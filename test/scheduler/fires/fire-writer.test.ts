import { expect } from 'chai';
import { decorated } from '../../../domain/decorated.ts';
import type { EventStore, NewEvent, StreamAppend } from '../../../domain/event-store.ts';
import { decideFires } from '../../../domain/tasks/fires.ts';
import { silent } from '../../../observability/telemetry.ts';
import { evolveRhythmOf } from '../../../projections/views/due.ts';
import { compileRule, type DueEntry } from '../../../scheduler/fires/due-index.ts';
import { FireWriter } from '../../../scheduler/fires/fire-writer.ts';
import type { EarlyDraft } from '../../../scheduler/runs/run-work.ts';
import { MemoryLog } from '../../domain/memory-log.ts';
import { LogOfTest, definition } from '../../projections/recorded.ts';

describe('the decision of a fire, on its way to the log', () => {
  const due = Date.parse('2026-03-02T00:00:00.000Z');
  let appended: readonly StreamAppend[];
  let writer: FireWriter;
  let entry: DueEntry;

  beforeEach(() => {
    appended = [];
    const store = decorated<EventStore>(new MemoryLog(), {
      appendInOrder: async (appends) => {
        appended = appends;
        return appends.map(({ events }) => {
          return { revision: events.length - 1, position: '1', duplicate: false };
        });
      },
    });
    writer = new FireWriter({ store, telemetry: silent, name: 'one' });
    const at = '2026-03-02T00:00:00.000Z';
    const created = new LogOfTest().add('task-t', 'TaskCreated', {
      definition: definition({ schedule_kind: 'once', schedule_expr: at }),
      anchor: '2026-03-01T00:00:00.000Z',
      next_fire_at: at,
    });
    const rhythm = evolveRhythmOf(null, created);
    if (rhythm === null) throw new Error('the task has a rhythm');
    entry = {
      ...{ taskId: 't', rhythm, dueAt: due, deciding: true },
      ...{ retryAt: 0, failures: 0, compiled: null },
    };
  });

  /** A worker of this process takes the run. */
  const begins = (): void => {
    const event = { type: 'RunStarted' } as unknown as NewEvent;
    writer.early = {
      draft: () => ({ event }) as unknown as EarlyDraft,
      begin: () => ({ event, began: () => {}, failed: () => {} }),
      hold: () => () => {},
    };
  };
  const write = async (isCrowded: boolean): Promise<(boolean | undefined)[]> => {
    const decision = decideFires('t', entry.rhythm, compileRule(entry.rhythm), due);
    await writer.write(entry, decision, { now: due, isCrowded });
    return appended.map(({ mayBeToldLater }) => mayBeToldLater);
  };

  it('may be told later where many are decided at once, and its run begins here', async () => {
    begins();
    expect(await write(true)).to.deep.equal([true, true]);
    expect(appended[1]?.events).to.have.lengthOf(2);
  });

  it('is told at once where it is one of few', async () => {
    begins();
    expect(await write(false)).to.deep.equal([false, false]);
  });

  it('is told at once where another process is to begin its run', async () => {
    expect(await write(true)).to.deep.equal([undefined, undefined]);
  });
});
