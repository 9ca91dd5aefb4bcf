import { expect } from 'chai';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { CausingService, cutAt, type ShownRun } from './causing-service.ts';

const publish = (topic: string): object => ({
  uses: 'events.publish',
  with: { topic, payload: {} },
});
const nap = { uses: 'sleep', with: { seconds: 0.05 } };
const depths = (runs: readonly ShownRun[]): readonly number[] => runs.map(({ depth }) => depth);
const counted = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);

/** Checks that all runs but the last succeeded, and that the last failed in its first attempt. */
async function expectCut(
  service: CausingService,
  runs: readonly ShownRun[],
  error: string,
): Promise<void> {
  const last = runs.at(-1);
  expect(runs.slice(0, -1).every(({ state }) => state === 'succeeded')).to.equal(true);
  expect(last).to.include({ state: 'failed', error });
  const shown = await service.client.get(`/runs/${last?.id}`);
  expect(shown.json).to.include({ attempt: 1, depth: runs.length - 1 });
}

describe('a chain of runs', () => {
  const directory = useTemporaryDirectory();
  const services: CausingService[] = [];
  const start = async (limit?: number): Promise<CausingService> => {
    const settings = limit === undefined ? {} : { SVC_MAX_CAUSATION_DEPTH: String(limit) };
    const service = await CausingService.start(directory(), settings);
    services.push(service);
    return service;
  };
  const stop = async (): Promise<void> => {
    await services.pop()?.stop();
  };
  afterEach(stop);

  it('ends with its 32nd run if two tasks trigger each other by events', async () => {
    const service = await start();
    await service.listen('ping', [publish('pong')]);
    await service.listen('pong', [publish('ping')]);
    await service.publish('ping');
    const runs = await service.endOfChain();
    expect(depths(runs)).to.deep.equal(counted(32));
    await expectCut(service, runs, cutAt(32, 'the event was not published'));
    const events = [await service.published('ping'), await service.published('pong')];
    const recorded = events.map((each) => each.map(({ metadata }) => metadata.depth));
    const even = counted(16).map((n) => (n === 0 ? undefined : String(2 * n)));
    const odd = counted(16).map((n) => String(2 * n + 1));
    expect(recorded).to.deep.equal([even, odd]);
    expect(await service.metric('loops_cut_total{what="event"}')).to.equal(1);
  });

  it('ends with its 32nd run if a task runs itself', async () => {
    const service = await start();
    const task = await service.listen('never', [
      { uses: 'tasks.run', with: { task_id: '${task.id}' } },
    ]);
    await service.client.post(`/tasks/${task}/run_now`);
    const runs = await service.endOfChain();
    expect(depths(runs)).to.deep.equal(counted(32));
    await expectCut(service, runs, cutAt(32, 'the run was not requested'));
    expect(await service.metric('loops_cut_total{what="run"}')).to.equal(1);
  });

  it('is counted across events and runs, and across restarts', async () => {
    const limit = 15;
    const first = await start(limit);
    const middle = await first.listen('never', [nap, publish('again')]);
    await first.listen('again', [nap, { uses: 'tasks.run', with: { task_id: middle } }]);
    await first.publish('again');
    // The log shows this without delay, so that the last run is far off and is not interrupted.
    await eventually(async () => (await first.published('again')).length >= 2);
    await stop();
    const second = await start(limit);
    const runs = await second.endOfChain();
    expect(depths(runs)).to.deep.equal(counted(limit));
    await expectCut(second, runs, cutAt(limit, 'the run was not requested'));
  });

  it('keeps its length if its last run is retried, even after a restart', async () => {
    const first = await start(2);
    await first.listen('ping', [publish('ping')]);
    await first.publish('ping');
    const [, cut] = await first.endOfChain();
    await stop();
    const second = await start(2);
    const retry = await second.client.post(`/runs/${cut?.id}/retry`);
    await eventually(async () => (await second.runs()).length === 3);
    await second.endOfChain();
    const shown = await second.client.get(`/runs/${retry.textAt('details.run_id')}`);
    expect(shown.json).to.include({
      depth: 1,
      state: 'failed',
      error: cutAt(2, 'the event was not published'),
    });
  });

  it('may be limited to one run, so that no run causes another', async () => {
    const service = await start(1);
    await service.listen('ping', [publish('pong')]);
    await service.publish('ping');
    const runs = await service.endOfChain();
    expect(depths(runs)).to.deep.equal([0]);
    expect(await service.published('pong')).to.deep.equal([]);
  });
});
