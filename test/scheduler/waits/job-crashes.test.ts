import { expect } from 'chai';
import type { RefusalError } from '../../../domain/errors.ts';
import { requestManualRun } from '../../../domain/tasks/task-commands.ts';
import { manualRunId } from '../../../domain/ids.ts';
import type { HandedJob } from '../../../scheduler/jobs/job.ts';
import { JobWorker } from './job-worker.ts';
import { JOB_LEASE, JOB_TOOL, type WaitsProcess } from './waits-process.ts';
import { WaitsWorld } from './waits-world.ts';

describe('a run with a job', () => {
  let world: WaitsWorld;
  let runId: string;

  beforeEach(async () => {
    world = await WaitsWorld.open();
    await world.task('t', [
      { id: 'mail', uses: JOB_TOOL, with: { to: 'me' } },
      { id: 'nap', uses: 'sleep', with: { seconds: 1 } },
      { id: 'after', uses: 'echo', with: { sent: '${steps.mail}' } },
    ]);
    runId = manualRunId('t', 'by hand');
  });
  afterEach(() => world.close());

  /** Requests the run through a process, and again if that process dies. */
  const request = async (process: WaitsProcess): Promise<void> => {
    const context = { ...world.world.context(), commandId: 'by hand' };
    const task = await world.world.task('t');
    void requestManualRun(process.store, 't', task, context);
    await world.world.idle();
    if (process.store.dead) await requestManualRun(world.world.store, 't', task, context);
  };

  const living = async (): Promise<WaitsProcess> =>
    world.processes.find(({ store }) => !store.dead) ?? world.start('b');

  /**
   * Does the job as often as it is given, and sends each result until there is a response.
   * @returns the responses, and whether a result was written whose response was lost
   */
  const work = async (worker: JobWorker) => {
    const answers: (RefusalError['code'] | null)[] = [];
    let isLost = false;
    let job: HandedJob | null = null;
    await world.until(async () => {
      const process = await living();
      if (job === null) job = await worker.poll(process);
      else {
        const answer = await worker.finish(process, job, { result: { n: 1 } });
        if (answer === undefined) isLost = (await world.resumptionsOf(runId)).length > 0;
        else {
          answers.push(answer?.code ?? null);
          job = null;
        }
      }
      const ended = ['succeeded', 'failed', 'canceled'];
      return job === null && ended.includes(await stateOf());
    });
    return { answers, isLost };
  };

  const stateOf = async (): Promise<string> => {
    const [first] = await world.eventsOf(runId);
    return first === undefined ? 'none' : (await world.run(runId)).state;
  };

  /** Checks what must be true whatever has died. */
  const expectOnce = async (given: readonly HandedJob[]): Promise<void> => {
    expect(await stateOf()).to.equal('succeeded');
    const events = await world.eventsOf(runId);
    const last = events.at(-1);
    expect(last?.type).to.equal('RunSucceeded');
    expect((await world.resumptionsOf(runId)).map(({ by }) => by.kind)).to.deep.equal([
      'job',
      'timer',
    ]);
    const counted = events.filter(({ type }) => /^Run(Requested|Succeeded|Failed)$/.test(type));
    expect(counted).to.have.lengthOf(2);
    const ends = events.flatMap((event) => {
      if (event.type === 'RunStepCompleted') return [event.data];
      return event.type === 'RunSucceeded' ? event.data.steps : [];
    });
    expect(ends.map(({ step }) => step)).to.deep.equal(['mail', 'nap', 'after']);
    expect(ends[2]?.result).to.deep.equal({ sent: { n: 1 } });
    expect(new Set(given.map(({ idempotency_key: key }) => key))).to.deep.equal(
      new Set([`${runId}:mail`]),
    );
    expect(new Set(given.map(({ job_id }) => job_id)).size).to.equal(1);
    expect(new Set(given.map(({ lease }) => lease)).size).to.equal(given.length);
    expect(new Set(ends.map(({ attempt }) => attempt))).to.deep.equal(new Set([1]));
  };

  const types = [
    'RunRequested',
    'RunStarted',
    'RunStepSuspended',
    'RunReleased',
    'RunStepResumed',
    'RunStepCompleted',
    'RunSucceeded',
  ] as const;

  for (const when of ['before', 'after'] as const) {
    for (const type of types) {
      it(`ends once when its process dies ${when} ${type} is written`, async () => {
        const first = await world.start('a');
        first.dieAt(when, (stream, events) => {
          return stream === `run-${runId}` && events.some((event) => event.type === type);
        });
        await request(first);
        const worker = new JobWorker(world);
        const { answers, isLost } = await work(worker);
        expect(first.store.dead).to.equal(true);
        await expectOnce(worker.given);
        expect(answers).to.deep.equal([isLost ? 'STATE_CONFLICT' : null]);
      });
    }

    it(`ends once when its process dies ${when} a worker gets the job's lease`, async () => {
      const first = await world.start('a');
      first.onTakeJobs = (at) => {
        if (at === when) first.kill();
      };
      await request(first);
      const worker = new JobWorker(world);
      expect((await work(worker)).answers).to.deep.equal([null]);
      expect(first.store.dead).to.equal(true);
      await expectOnce(worker.given);
    });
  }

  for (const process of ['the same process', 'another process'] as const) {
    it(`is given to another worker by ${process} if its worker dies, whose late result is rejected`, async () => {
      const first = await world.start('a');
      await request(first);
      await world.untilState(runId, 'waiting');
      const dead = new JobWorker(world, 'dead');
      const job = await dead.poll(first);
      expect(job).to.not.equal(null);
      if (job === null) return;
      if (process === 'another process') first.kill();
      const other = new JobWorker(world, 'other');
      await world.clock.advance(JOB_LEASE - 1000);
      expect(await other.poll(await living())).to.equal(null);
      expect((await work(other)).answers).to.deep.equal([null]);
      const late = await dead.finish(await living(), job, { result: { n: 2 } });
      expect(late).to.have.property('code', 'STATE_CONFLICT');
      await expectOnce([...dead.given, ...other.given]);
    });
  }
});
