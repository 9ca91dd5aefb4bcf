import { expect } from 'chai';
import { requestManualRun } from '../../../domain/tasks/task-commands.ts';
import type { MisfirePolicy } from '../../../domain/vocabulary.ts';
import { CrashProcess, LEASE, type Seen } from './crash-process.ts';
import { minute, minutes, START, World } from '../scheduler-world.ts';

const second = 1000;
const hour = 60 * minute;

describe('a clock that is set', () => {
  let world: World;
  let seen: Seen[];
  let processes: CrashProcess[];

  beforeEach(async () => {
    world = await World.open();
    seen = [];
    processes = [];
  });

  afterEach(async () => {
    const stopped = Promise.all(processes.map((process) => process.stop()));
    await world.clock.advance(30 * second);
    await stopped;
    await world.close();
  });

  const start = async (id: string): Promise<CrashProcess> => {
    const process = new CrashProcess(world, id, seen);
    processes.push(process);
    await process.ready.wait();
    await world.idle();
    return process;
  };

  const jump = async (milliseconds: number): Promise<void> => {
    world.clock.setTo(world.clock.now() + milliseconds);
    await world.idle();
  };

  const create = (id: string, misfire_policy: MisfirePolicy): Promise<void> =>
    world.createTask(id, {
      misfire_policy,
      misfire_grace_seconds: 60,
      payload: { pipeline: [{ id: 'only', uses: 'act' }] },
    });

  /** How often the process reads the clock in many turns of the event loop, while the time stands still. */
  const looksWhileStill = async (): Promise<number> => {
    const { clock } = world;
    const now = clock.now.bind(clock);
    let looks = 0;
    clock.now = () => {
      looks += 1;
      return now();
    };
    for (let turn = 0; turn < 2000; turn += 1) {
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    clock.now = now;
    return looks;
  };

  /** Creates a task and requests a manual run of it. */
  const run = async (id: string, fields: Parameters<World['createTask']>[1]): Promise<void> => {
    await world.createTask(id, { ...fields, schedule_kind: 'event', schedule_expr: null });
    await requestManualRun(world.store, id, await world.task(id), world.context());
  };

  const ends = async (): Promise<string[]> =>
    (await world.events('run-'))
      .map(({ type }) => type)
      .filter((type) => type === 'RunSucceeded' || type === 'RunFailed');

  const ended = async (): Promise<number> =>
    (await world.events('run-')).filter(({ type }) => type === 'RunSucceeded').length;

  describe('back by an hour', () => {
    it('fires nothing a second time, and continues with the first undecided time', async () => {
      for (const policy of ['skip', 'latest', 'all'] as const) await create(policy, policy);
      await start('one');
      await world.clock.advance(5 * minute + second);
      await jump(-hour);
      expect(await looksWhileStill()).to.be.below(100);
      await world.clock.advance(10 * minute);
      expect(await ended()).to.equal(15);
      world.clock.setTo(START + 5 * minute + second);
      await world.clock.advance(3 * minute);
      for (const policy of ['skip', 'latest', 'all']) {
        const { fired, skipped, requested } = await world.outcome(policy);
        expect({ fired, skipped }).to.deep.equal({ fired: minutes(1, 8), skipped: [] });
        expect(requested).to.deep.equal(fired);
      }
      expect(await ended()).to.equal(24);
    });

    it('does not extend the timeout of a step or a run', async () => {
      await start('one');
      const nap = { id: 'nap', uses: 'nap', with: 20, timeout_seconds: 600 };
      await run('step', {
        payload: { pipeline: [{ ...nap, timeout_seconds: 5 }] },
        max_retries: 0,
      });
      await run('run', { payload: { pipeline: [nap] }, timeout_seconds: 5, max_retries: 0 });
      const parallel = [{ id: 'parallel', parallel: [nap], timeout_seconds: 5 }];
      await run('group', { payload: { pipeline: parallel }, max_retries: 0 });
      await world.clock.advance(2 * second);
      await jump(-hour);
      await world.clock.advance(2 * second);
      expect(await ends()).to.deep.equal([]);
      await world.clock.advance(2 * second);
      expect(await ends()).to.deep.equal(['RunFailed', 'RunFailed', 'RunFailed']);
    });

    it('does not extend the lease of a dead leader, so another process leads', async () => {
      const one = await start('one');
      await world.clock.advance(second);
      expect(one.leadership.leads).to.equal(true);
      one.die();
      await jump(-hour);
      const two = await start('two');
      await world.clock.advance(LEASE);
      expect(two.leadership.leads).to.equal(true);
    });

    it('does not keep a dead worker alive for an hour, so its run is taken over', async () => {
      const pipeline = [{ id: 'long', uses: 'nap', with: 10 }];
      await world.createTask('t', {
        schedule_kind: 'event',
        schedule_expr: null,
        payload: { pipeline },
      });
      const one = await start('one');
      await requestManualRun(world.store, 't', await world.task('t'), world.context());
      await world.clock.advance(2 * second);
      expect(seen).to.have.lengthOf(1);
      await start('two');
      one.die();
      // After the jump, the time of the request is in the future. A run that has not started would wait for it.
      await jump(-hour);
      await world.clock.advance(3 * LEASE);
      const types = (await world.events('run-')).map(({ type }) => type);
      expect(types.slice(0, 3)).to.deep.equal(['RunRequested', 'RunStarted', 'RunInterrupted']);
      await jump(hour);
      await world.clock.advance(minute);
      expect(await ended()).to.equal(1);
      expect(new Set(seen.map((each) => each.kind === 'call' && each.key)).size).to.equal(1);
    });

    it('does not keep a key from a run that waits for it', async () => {
      const fields = {
        concurrency_key: 'printer',
        payload: { pipeline: [{ id: 'print', uses: 'nap', with: 4 }] },
      };
      await world.createTask('t', { ...fields, schedule_kind: 'event', schedule_expr: null });
      await start('one');
      for (let n = 0; n < 3; n += 1) {
        await requestManualRun(world.store, 't', await world.task('t'), world.context());
      }
      await world.clock.advance(2 * second);
      // Runs do not start before the time of their request. This jump is short, so they are due again soon.
      await jump(-10 * second);
      await world.clock.advance(minute);
      expect(await ended()).to.equal(3);
    });
  });

  describe('forward by an hour', () => {
    const wanted = {
      skip: { fired: [...minutes(1, 5), ...minutes(65, 67)], skipped: ['missed 59'] },
      latest: { fired: [...minutes(1, 5), ...minutes(65, 67)], skipped: ['missed 59'] },
      all: { fired: minutes(1, 67), skipped: [] },
    };

    it('acts like an outage: the misfire policy decides once', async () => {
      for (const policy of ['skip', 'latest', 'all'] as const) await create(policy, policy);
      await start('one');
      await start('two');
      await world.clock.advance(5 * minute + second);
      await jump(hour);
      expect(await looksWhileStill()).to.be.below(100);
      await world.clock.advance(2 * minute);
      for (const policy of ['skip', 'latest', 'all'] as const) {
        const { fired, skipped, requested } = await world.outcome(policy);
        expect({ policy, fired, skipped }).to.deep.equal({ policy, ...wanted[policy] });
        expect([...requested].sort()).to.deep.equal(fired);
      }
    });

    it('does not shorten the timeout of a step or a run', async () => {
      await start('one');
      const nap = { id: 'nap', uses: 'nap', with: 20, timeout_seconds: 30 };
      await run('t', { payload: { pipeline: [nap] }, timeout_seconds: 60, max_retries: 0 });
      await world.clock.advance(2 * second);
      await jump(hour);
      await world.clock.advance(17 * second);
      expect(await ends()).to.deep.equal([]);
      await world.clock.advance(2 * second);
      expect(await ends()).to.deep.equal(['RunSucceeded']);
    });

    it('and back again, fires nothing twice', async () => {
      await create('t', 'all');
      await start('one');
      await world.clock.advance(5 * minute + second);
      await jump(hour);
      await world.clock.advance(minute);
      await jump(-hour);
      await world.clock.advance(hour + 2 * minute);
      const { fired, requested } = await world.outcome('t');
      expect(fired).to.deep.equal(minutes(1, 68));
      expect(new Set(requested).size).to.equal(requested.length);
      expect(await ended()).to.equal(68);
    });

    it('takes no run from a live worker', async () => {
      const pipeline = [
        { id: 'long', uses: 'nap', with: 30, timeout_seconds: 7200 },
        { id: 'last', uses: 'act' },
      ];
      await world.createTask('t', {
        schedule_kind: 'event',
        schedule_expr: null,
        payload: { pipeline },
      });
      await start('one');
      await world.clock.advance(500);
      await start('two');
      for (let n = 0; n < 4; n += 1) {
        await requestManualRun(world.store, 't', await world.task('t'), world.context());
      }
      // After the jump, process `two` looks for dead workers before process `one` can renew its heartbeat.
      await world.clock.advance(1700);
      await jump(hour);
      await world.clock.advance(3 * LEASE);
      const types = (await world.events('run-')).map(({ type }) => type);
      expect(types.filter((type) => type === 'RunInterrupted')).to.deep.equal([]);
      expect(seen).to.have.lengthOf(4);
      await world.clock.advance(minute);
      expect(await ended()).to.equal(4);
    });
  });
});
