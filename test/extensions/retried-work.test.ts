import { expect } from 'chai';
import { EventStoreError, type EventStore, type RecordedEvent } from '../../domain/event-store.ts';
import { newId } from '../../domain/ids.ts';
import { compileTopicPattern } from '../../domain/schedule/topic-pattern.ts';
import type { Extension } from '../../extensions/host/extension.ts';
import type { LeasedWork, WorkItem } from '../../extensions/host/leased-work.ts';
import { backgroundAccess } from '../../extensions/host/provided/background-tasks.ts';
import { Subscription } from '../../extensions/host/provided/subscription.ts';
import { reportRetries, type RetriedWork } from '../../extensions/host/retried-work.ts';
import type { LogFields } from '../../observability/telemetry.ts';
import type { Coordination } from '../../scheduler/coordination.ts';
import { reportingTo } from '../support/reporting-to.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

describe('retried work of an extension', () => {
  let clock: VirtualClock;
  let lines: Line[];
  let counted: unknown[];
  let reportOf: (what: string) => RetriedWork;
  let stop: AbortController;
  let working: Promise<void>;
  const telemetry = () => {
    const at =
      (level: string) =>
      (message: string, fields: LogFields = {}): void =>
        void lines.push({ level, message, fields });
    const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
    return reportingTo(log, () => clock.steady());
  };
  const shown = (): Line[] => lines.filter(({ level }) => level !== 'debug');

  beforeEach(() => {
    clock = new VirtualClock();
    lines = [];
    counted = [];
    const { failures } = telemetry();
    reportOf = (what) => reportRetries('busy', what, failures, (error) => counted.push(error));
    stop = new AbortController();
    working = Promise.resolve();
  });
  afterEach(async () => {
    stop.abort();
    await working;
  });

  /** Runs a background task as the holder of the lease does. */
  async function start(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const items: WorkItem[] = [];
    const leased = { add: (item: WorkItem) => void items.push(item) } as unknown as LeasedWork;
    const extension = { id: 'busy', has: () => true } as unknown as Extension;
    const access = backgroundAccess(extension, leased, clock, (call) => call(), reportOf);
    await access.startTask('poll', work);
    working = items[0]?.run(stop.signal, 1) ?? working;
    await settle();
  }

  const message = 'extension busy: background task poll failed; retrying';

  it('has one line when a background task fails, one a minute with the count, and one when it works again', async () => {
    let fails = true;
    await start(async (signal) => {
      if (fails) throw new Error('no queue');
      await clock.sleep(1_000_000, signal).catch(() => {});
    });
    await clock.advance(200_000);
    const why = { error: 'Error: no queue', extension: 'busy' };
    // It fails at once, after 1 s, 3 s, 7 s, 15 s, 31 s and 63 s, and then each minute.
    expect(shown()).to.deep.equal([
      { level: 'warn', message, fields: why },
      { level: 'warn', message, fields: { ...why, times: 6, seconds: 63 } },
      { level: 'warn', message, fields: { ...why, times: 1, seconds: 123 } },
      { level: 'warn', message, fields: { ...why, times: 1, seconds: 183 } },
    ]);
    expect(counted).to.have.lengthOf(9);
    fails = false;
    await clock.advance(43_000 + 59_000);
    expect(shown()).to.have.lengthOf(4);
    await clock.advance(1_000);
    expect(shown().slice(4)).to.deep.equal([
      {
        level: 'info',
        message: `succeeded again after: ${message}`,
        fields: { times: 9, seconds: 303 },
      },
    ]);
  });

  it('works again when a background task is done', async () => {
    let tries = 0;
    await start(async () => {
      tries += 1;
      if (tries === 1) throw new Error('no queue');
    });
    await clock.advance(1_000);
    expect(shown().map(({ level }) => level)).to.deep.equal(['warn', 'info']);
  });

  it('is one cause, whatever names and codes its errors have, and shows their stacks only at level debug', () => {
    const report = reportOf('background task poll');
    for (let number = 0; number < 20; number += 1) {
      const error = Object.assign(new Error('no queue'), { code: `E${String(number)}` });
      error.name = `Error${String(number)}`;
      report.failed(error);
    }
    expect(shown()).to.have.lengthOf(1);
    expect(JSON.stringify(shown())).not.to.include('retried-work.test');
    const { error } = lines[0]?.fields ?? {};
    expect((error as Error).stack).to.include('retried-work.test');
    expect(counted).to.have.lengthOf(20);
  });

  it('shares the lines of an unavailable event log', () => {
    const { failures } = telemetry();
    const away = new EventStoreError('UNAVAILABLE', 'disk full');
    failures.failed('could not renew a lease', away);
    reportRetries('busy', 'background task poll', failures, () => {}).failed(away);
    expect(shown().map((line) => line.message)).to.deep.equal(['event log unavailable: disk full']);
  });

  it('is reported although its error cannot be read', () => {
    const error = new EventStoreError('UNAVAILABLE', 'disk full');
    Object.defineProperty(error, 'cause', {
      get() {
        throw new Error('unreadable');
      },
    });
    reportOf('background task poll').failed(error);
    expect(shown().map((line) => line.message)).to.deep.equal([message]);
  });

  it('has one line when a subscriber fails, and one when it handles an event again', async () => {
    const ids = [newId(clock.now()), newId(clock.now())];
    const published = ids.map(
      (event_id, index): RecordedEvent =>
        ({
          type: 'EventPublished',
          stream: 'topic-a.b',
          revision: index,
          position: `0${String(index + 1)}`,
          data: {
            event_id,
            topic: 'a.b',
            payload: {},
            published_at: '2026-01-01T00:00:00.000Z',
          },
        }) as unknown as RecordedEvent,
    );
    const store = {
      head: async () => '00',
      reaches: async () => true,
      readAll: async () => [],
      readAllBackwards: async () => [],
      async *subscribe({ signal }: { signal: AbortSignal }) {
        yield { kind: 'events', events: published };
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    } as unknown as EventStore;
    const coordination = {
      recall: async () => null,
      remember: async () => true,
    } as unknown as Coordination;
    const handled: string[] = [];
    const subscription = new Subscription({
      label: 'subscriber of a.*',
      name: 'extension busy a.*',
      store,
      coordination,
      telemetry: telemetry(),
      pattern: compileTopicPattern('a.*'),
      handle: async ({ stream_id }, _signal, { position }) => {
        if (position === '01') throw new Error('no room');
        handled.push(stream_id);
      },
      handling: reportOf('subscriber of a.*'),
      clock,
    });
    await subscription.fixStart();
    working = subscription.run(stop.signal, 1);
    await clock.advance(10_000);
    expect(handled).to.have.lengthOf(1);
    const failed = 'extension busy: subscriber of a.* failed; retrying';
    expect(shown().map((line) => [line.level, line.message])).to.deep.equal([
      ['warn', failed],
      ['info', `succeeded again after: ${failed}`],
    ]);
    expect(shown()[0]?.fields).to.include({
      extension: 'busy',
      event: ids[0],
    });
    expect(counted).to.have.lengthOf(5);
  });
});
