import { expect } from 'chai';
import type { CommandContext } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { publishEvent } from '../../../domain/topics/publishing.ts';
import { trimTopic, type Trimmed } from '../../../domain/topics/topic-trimming.ts';
import { MemoryLog } from '../memory-log.ts';

const MINUTE = 60_000;
const start = Date.parse('2026-03-01T08:00:00.000Z');
const at = (minutes: number): number => start + minutes * MINUTE;

/** The topic as seen by a view that knows of no trimming yet. */
const extent = { topic: 'orders', before: 0, trims: [] };
const upTo = { knownUpTo: '', requestedUpTo: '9999' };

function context(now: number): CommandContext {
  const id = newId(now);
  return { commandId: id, actor: 'agent-1', source: 'test', correlationId: id, now };
}

/** Publishes one event a minute, from minute `from` to before minute `to`. */
async function publish(log: MemoryLog, from: number, to: number): Promise<void> {
  for (let minute = from; minute < to; minute += 1) {
    const event = { topic: 'orders', payload: {}, source_agent_id: 'agent-1' };
    await publishEvent(log, event, [], context(at(minute)));
  }
}

const trim = (log: MemoryLog, minutes: number): Promise<Trimmed> =>
  trimTopic(log, extent, at(minutes), upTo, context(at(60)));

describe('trimming a topic', () => {
  let log: MemoryLog;
  beforeEach(async () => {
    log = new MemoryLog();
    log.truncate = (): Promise<void> => Promise.resolve();
    await publish(log, 0, 10);
  });

  /** Runs an action right before the next append. */
  function beforeTheNext(action: () => Promise<unknown>): void {
    log.onAppend = async () => {
      log.onAppend = () => {};
      await action();
    };
  }

  it('counts an event once when two processes remove it at once', async () => {
    const others: Trimmed[] = [];
    beforeTheNext(async () => others.push(await trim(log, 6)));
    const own = await trim(log, 8);
    expect([...others, own].map(({ deleted }) => deleted)).to.deep.equal([6, 2]);
    expect((await trim(log, 8)).deleted).to.equal(0);
  });

  it('removes nothing if another process has removed more', async () => {
    beforeTheNext(() => trim(log, 8));
    const own = await trim(log, 6);
    const records = await log.readStream('topic-orders', { from: 10 });
    expect(own).to.deep.equal({ deleted: 0, position: records[0]?.position });
    expect(records.map(({ data }) => data)).to.have.length(1);
    expect(records[0]?.data).to.deep.include({ first: 0, before: 8, deleted_count: 8 });
  });

  it('continues if an event is published in the meantime', async () => {
    beforeTheNext(() => publish(log, 10, 12));
    expect((await trim(log, 8)).deleted).to.equal(8);
  });

  it('does not count a `TopicTrimmed` of another process that its view has not seen', async () => {
    await trim(log, 4);
    await publish(log, 10, 14);
    expect((await trim(log, 14)).deleted).to.equal(10);
  });
});
