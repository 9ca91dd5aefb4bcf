import { expect } from 'chai';
import { Supervisor } from '../../../app/roles/supervisor.ts';
import { EventStoreError } from '../../../domain/event-store.ts';
import type { LogFields } from '../../../observability/telemetry.ts';
import { deferred } from '../../support/signals.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';
import { reportingTo } from '../../support/reporting-to.ts';

describe('supervised work', () => {
  const clock = new VirtualClock();
  let logged: { readonly level: string; readonly message: string }[];
  let supervisor: Supervisor;

  beforeEach(() => {
    logged = [];
    const note =
      (level: string) =>
      (message: string, _fields?: LogFields): void =>
        void logged.push({ level, message });
    const log = {
      debug: note('debug'),
      info: note('info'),
      warn: note('warn'),
      error: note('error'),
    };
    supervisor = new Supervisor(
      clock,
      reportingTo(log, () => clock.steady()),
    );
  });

  /** The levels of all lines but those with stacks. */
  const levels = (): string[] =>
    logged.map(({ level }) => level).filter((level) => level !== 'debug');

  /** Ends when it is stopped. */
  const untilAborted = (): Promise<void> =>
    new Promise((resolve) => {
      supervisor.signal.addEventListener('abort', () => resolve(), { once: true });
    });

  it('waits longer each time it fails soon after its start, and logs one warning', async () => {
    const begun: number[] = [];
    supervisor.supervise('counting', async (started) => {
      begun.push(clock.now());
      started();
      throw new Error('the views are unavailable');
    });
    await settle();
    await clock.advance(1_000);
    const [first = 0] = begun;
    expect(begun.map((at) => at - first)).to.deep.equal([0, 100, 350, 850]);
    expect(levels()).to.deep.equal(['warn']);
    await supervisor.end();
  });

  it('starts again with short pauses after a long time without a failure', async () => {
    const begun: number[] = [];
    supervisor.supervise('counting', async (started) => {
      begun.push(clock.now());
      started();
      await clock.sleep(60_000, supervisor.signal);
      throw new Error('the views are unavailable');
    });
    await settle();
    await clock.advance(121_000);
    const [first = 0] = begun;
    expect(begun.map((at) => at - first)).to.deep.equal([0, 60_100, 120_200]);
    await supervisor.end();
  });

  it('counts its running time from its first report that it has started', async () => {
    const begun: number[] = [];
    supervisor.supervise('following', async (started) => {
      begun.push(clock.now());
      started();
      await clock.sleep(60_000, supervisor.signal);
      started();
      throw new Error('the views are unavailable');
    });
    await settle();
    await clock.advance(121_000);
    const [first = 0] = begun;
    expect(begun.map((at) => at - first)).to.deep.equal([0, 60_100, 120_200]);
    // It had worked for a while before it failed again.
    expect(levels()).to.deep.equal(['warn', 'info', 'warn']);
    await supervisor.end();
  });

  it('is listed as not running until it has started', async () => {
    const ready = deferred();
    supervisor.supervise('counting', async (started) => {
      await ready.promise;
      started();
      await untilAborted();
    });
    expect(supervisor.notRunning()).to.deep.equal([
      { name: 'counting', state: 'starting', problem: null },
    ]);
    ready.resolve();
    await settle();
    expect(supervisor.notRunning()).to.deep.equal([]);
    await supervisor.end();
    expect(supervisor.notRunning()).to.deep.include({
      name: 'counting',
      state: 'stopped',
      problem: null,
    });
  });

  it('restarts after a growing pause, and shows the problem', async () => {
    let begun = 0;
    supervisor.supervise('counting', () => {
      begun += 1;
      return Promise.reject(new Error(`broken ${begun}`));
    });
    const after: number[] = [];
    for (const pause of [0, 100, 250, 500, 1000, 2000, 2000]) {
      await clock.advance(pause);
      after.push(begun);
    }
    expect(after).to.deep.equal([1, 2, 3, 4, 5, 6, 7]);
    expect(supervisor.notRunning()).to.deep.equal([
      { name: 'counting', state: 'failing', problem: 'broken 7' },
    ]);
    expect(levels()).to.deep.equal(['warn']);
    await supervisor.end();
    await clock.advance(10_000);
    expect(begun).to.equal(7);
  });

  it('treats an unexpected end as a failure', async () => {
    supervisor.supervise('counting', (started) => {
      started();
      return Promise.resolve();
    });
    await settle();
    expect(supervisor.notRunning()).to.deep.include({
      name: 'counting',
      state: 'failing',
      problem: 'it ended unexpectedly',
    });
    await supervisor.end();
  });

  it('retries work done once until it succeeds, and then counts it as running', async () => {
    let begun = 0;
    supervisor.superviseOnce('loading', () => {
      begun += 1;
      return begun < 3 ? Promise.reject(new Error('broken')) : Promise.resolve();
    });
    await clock.advance(100);
    expect(supervisor.notRunning()).to.deep.include({
      name: 'loading',
      state: 'failing',
      problem: 'broken',
    });
    await clock.advance(250);
    expect(supervisor.notRunning()).to.deep.equal([]);
    await supervisor.end();
    expect(begun).to.equal(3);
  });

  it('logs one error if the log holds events of a newer release', async () => {
    supervisor.supervise('counting', () =>
      Promise.reject(new EventStoreError('NEWER_SCHEMA', 'RunTeleported is not known')),
    );
    await clock.advance(350);
    expect(levels()).to.deep.equal(['error']);
    await supervisor.end();
  });

  it('ends all work, and waits for it', async () => {
    const slow = deferred();
    supervisor.supervise('one', async (started) => {
      started();
      await untilAborted();
      await slow.promise;
    });
    supervisor.supervise('two', () => Promise.reject(new Error('broken')));
    await settle();
    let ended = false;
    const ending = supervisor.end().then(() => (ended = true));
    await settle();
    expect(ended).to.equal(false);
    slow.resolve();
    await ending;
    expect(supervisor.notRunning().map(({ state }) => state)).to.deep.equal(['stopped', 'stopped']);
    expect(clock.pending).to.equal(0);
  });
});
