import { expect } from 'chai';
import {
  BEGINNING,
  type EventStore,
  type SubscriptionMessage,
} from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import { logUpTo } from '../../../projections/generations/bounded-log.ts';
import { ReplayFilling } from '../../../projections/replays/replay-filling.ts';
import { topicsProjection } from '../../../projections/views/topics.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { deferred, eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const at = (position: number): string => String(position).padStart(16, '0');

/** A log of 100 positions without wanted events. It reports how far it was read, and waits between the steps. */
function emptyLog(steps: readonly number[], goOn: () => Promise<void>): EventStore {
  const log: Pick<EventStore, 'head' | 'subscribe'> = {
    head: async () => at(100),
    async *subscribe({ onPassed, signal }): AsyncGenerator<SubscriptionMessage> {
      for (const step of steps) {
        if (signal.aborted) return;
        onPassed?.(at(step));
        await goOn();
      }
      if (!signal.aborted) yield { kind: 'caught-up', position: at(100) };
    },
  };
  return log as EventStore;
}

describe('the fill of a view with few events in the log', () => {
  const directory = useTemporaryDirectory();

  it('shows how far the log was read, even if no events arrived', async () => {
    const readModel = await openSqliteReadModel({ directory: directory(), telemetry: silent });
    const gate = deferred();
    try {
      const filling = new ReplayFilling({
        store: emptyLog([40], () => gate.promise),
        readModel,
        clock: new VirtualClock(),
        telemetry: silent,
        fence: 1,
        projection: topicsProjection,
        generation: 1,
        until: at(80),
        rate: null,
        skipped: new Set(),
      });
      const filled = filling.run(new AbortController().signal);
      await eventually(() => filling.progress === 0.5);
      gate.resolve();
      expect(await filled).to.equal(true);
      expect(filling.progress).to.equal(1);
    } finally {
      gate.resolve();
      await readModel.close();
    }
  });
});

describe('a log that ends at a position', () => {
  const messagesOf = async (
    log: EventStore,
    signal = new AbortController().signal,
  ): Promise<readonly SubscriptionMessage[]> => {
    const messages: SubscriptionMessage[] = [];
    for await (const message of log.subscribe({ after: BEGINNING, signal })) messages.push(message);
    return messages;
  };

  it('is not read beyond that position', async () => {
    const looked: number[] = [];
    const log = emptyLog([40, 80, 90], async () => void looked.push(looked.length));
    expect(await messagesOf(logUpTo(log, at(60)))).to.deep.equal([
      { kind: 'caught-up', position: at(60) },
    ]);
    expect(looked).to.have.lengthOf(2);
  });

  it('delivers nothing after it was aborted', async () => {
    const ending = new AbortController();
    const log = emptyLog([40, 80], async () => ending.abort());
    expect(await messagesOf(logUpTo(log, at(60)), ending.signal)).to.deep.equal([]);
  });
});
