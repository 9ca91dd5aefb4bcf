import { expect } from 'chai';
import type { Artifact } from '../../../domain/artifacts/artifact.ts';
import { endsOf } from '../../../domain/runs/run-steps.ts';
import { retryFailedRun } from '../../../domain/runs/run-retry.ts';
import type { NewEvent } from '../../../domain/event-store.ts';
import { WaitsWorld } from './waits-world.ts';

describe('runs with large results', () => {
  const large = 'x'.repeat(300 * 1024);
  let world: WaitsWorld;

  beforeEach(async () => {
    world = await WaitsWorld.open();
  });
  afterEach(() => world.close());

  /** The payload of a task may have 256 KiB: the pipelines double a smaller text. */
  const half = 'x'.repeat(150 * 1024);
  const twice = { id: 'big', uses: 'echo', with: { rows: '${params.half}${params.half}' } };
  const task = (id: string, pipeline: readonly object[]): Promise<void> =>
    world.task(id, pipeline, {
      payload: { params: { half }, pipeline },
    });
  const resultOf = async (runId: string, step: string): Promise<unknown> =>
    endsOf((await world.run(runId)).steps).find((end) => end.step === step)?.result;
  const holds = (type: string) => (stream: string, events: readonly NewEvent[]) =>
    stream.startsWith('run-') && events.some((event) => event.type === type);
  const childOf = async (): Promise<string> => (await world.runsOf('child'))[0] ?? '';

  it('leave an artifact without a reference if their worker dies in between, and end with one artifact', async () => {
    await task('one', [twice, { id: 'hold', uses: 'hold', timeout_seconds: 86_400 }]);
    const first = await world.start('a');
    first.dieAt('before', holds('RunStepCompleted'));
    const run = await world.request('one');
    await world.until(async () => first.store.dead);
    expect(world.artifacts.namesOf(run)).to.have.lengthOf(1);
    expect(await resultOf(run, 'big')).to.equal(undefined);
    await world.start('b');
    await world.until(async () => (await resultOf(run, 'big')) !== undefined);
    const { artifact } = (await resultOf(run, 'big')) as Artifact;
    expect(world.artifacts.namesOf(run)).to.deep.equal([artifact]);
    expect(world.artifacts.jsonOf(run, artifact)).to.deep.equal({ rows: large });
  });

  describe('of which one waits for another,', () => {
    const call = { id: 'call', uses: 'tasks.run', with: { task_id: 'child', wait: true } };

    it('copy the artifacts of the child to the parent', async () => {
      await task('child', [twice]);
      await task('parent', [call]);
      await world.start('a');
      const parent = await world.request('parent');
      expect((await world.untilEnded(parent)).state).to.equal('succeeded');
      const { artifact } = (await resultOf(await childOf(), 'big')) as Artifact;
      expect(await resultOf(parent, 'call')).to.have.nested.property(
        'steps.big.artifact',
        artifact,
      );
      expect(world.artifacts.namesOf(parent)).to.deep.equal([artifact]);
    });

    it('make an artifact of a large output whose single results are small', async () => {
      const some = (id: string): object => ({ id, uses: 'echo', with: '${params.half}' });
      await task('child', [some('a'), some('b')]);
      await task('parent', [call]);
      await world.start('a');
      const parent = await world.request('parent');
      expect((await world.untilEnded(parent)).state).to.equal('succeeded');
      const { artifact, size_bytes } = (await resultOf(parent, 'call')) as Artifact;
      expect(size_bytes).to.be.above(300 * 1024);
      expect(world.artifacts.jsonOf(parent, artifact)).to.deep.include({
        steps: { a: half, b: half },
      });
    });

    it('contain no secret of the parent', async () => {
      world.secretValues.set('KEY', 'open sesame');
      const some = (id: string): object => ({
        id,
        uses: 'echo',
        with: '${params.half} open sesame',
      });
      await task('child', [some('a'), some('b')]);
      const key = { id: 'key', uses: 'reveal', with: '${secrets.KEY}', if: 'params.none' };
      await task('parent', [call, key]);
      await world.start('a');
      const parent = await world.request('parent');
      expect((await world.untilEnded(parent)).state).to.equal('succeeded');
      const { artifact } = (await resultOf(parent, 'call')) as Artifact;
      expect(world.artifacts.jsonOf(parent, artifact)).to.deep.include({
        steps: { a: `${half} ***`, b: `${half} ***` },
      });
    });

    it('end the wait once the store is available again', async () => {
      await task('child', [twice, { id: 'hold', uses: 'hold', timeout_seconds: 86_400 }]);
      await task('parent', [call]);
      await world.start('a');
      const parent = await world.request('parent');
      await world.until(async () => world.gates.has('hold'));
      world.artifacts.failing = 5;
      world.gates.get('hold')?.resolve();
      expect((await world.untilEnded(parent)).state).to.equal('succeeded');
      expect(world.artifacts.failing).to.equal(0);
      expect(world.artifacts.namesOf(parent)).to.have.lengthOf(1);
    });

    it('are resumed by another process if the first dies before the append', async () => {
      await task('child', [twice]);
      await task('parent', [call]);
      const first = await world.start('a');
      first.dieAt('before', holds('RunStepResumed'));
      const parent = await world.request('parent');
      await world.until(async () => first.store.dead);
      expect(world.artifacts.namesOf(parent)).to.have.lengthOf(1);
      await world.start('b');
      expect((await world.untilEnded(parent)).state).to.equal('succeeded');
      expect(world.artifacts.namesOf(parent)).to.have.lengthOf(1);
    });
  });

  it('keep their artifacts when they are retried as a new run', async () => {
    await task('one', [
      twice,
      { id: 'no', uses: 'fail', with: { message: 'no', retryable: false } },
    ]);
    await world.start('a');
    const run = await world.request('one');
    expect((await world.untilEnded(run)).state).to.equal('failed');
    const { store } = world.world;
    const artifacts = { store: world.artifacts, maxBytes: 1024 * 1024 };
    const given = { task: await world.world.task('one'), context: world.world.context() };
    const retry = { store, artifacts, runId: run, from: 'failed_step', ...given } as const;
    const { runId } = await retryFailedRun(retry);
    const { artifact } = (await resultOf(run, 'big')) as Artifact;
    expect(world.artifacts.namesOf(runId)).to.deep.equal([artifact]);
    await world.untilEnded(runId);
    expect(await resultOf(runId, 'big')).to.have.property('artifact', artifact);
  });

  it('name the step whose result could not be stored', async () => {
    await task('one', [twice]);
    await world.start('a');
    world.artifacts.failing = Infinity;
    const run = await world.request('one');
    expect((await world.untilEnded(run)).state).to.equal('failed');
    const last = (await world.eventsOf(run)).at(-1);
    expect(last?.data).to.include({ step: 'big' });
    expect(last?.data)
      .to.have.property('error')
      .that.matches(/^its result is too large for the log/);
  });
});
