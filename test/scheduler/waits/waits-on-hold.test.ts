import { expect } from 'chai';
import { newId } from '../../../domain/ids.ts';
import { endWaitCommand } from '../../../domain/runs/wait-commands.ts';
import { publishEvent } from '../../../domain/topics/publishing.ts';
import { JobWorker } from './job-worker.ts';
import { JOB_TOOL } from './waits-process.ts';
import { WaitsWorld } from './waits-world.ts';

const second = 1000;

describe('a run that waits while the service is on hold', () => {
  let world: WaitsWorld;

  beforeEach(async () => {
    world = await WaitsWorld.open();
  });
  afterEach(() => world.close());

  const hold = { id: 'h', uses: 'hold' };
  const after = { id: 'after', uses: 'hold' };

  const waiting = async (taskId = 't'): Promise<string> => {
    const runId = await world.request(taskId);
    await world.untilState(runId, 'waiting');
    return runId;
  };

  const stateOf = async (runId: string): Promise<string> => (await world.run(runId)).state;

  it('wakes from its sleep at the release, and not before', async () => {
    await world.task('t', [{ uses: 'sleep', with: { seconds: 5 } }]);
    await world.start('a');
    const runId = await waiting();
    await world.setHold(true);
    await world.clock.advance(60 * second);
    expect(await stateOf(runId)).to.equal('waiting');
    await world.setHold(false);
    expect((await world.untilEnded(runId)).state).to.equal('succeeded');
  });

  it('does not time out, nor does a run that waits for its next attempt, until the release', async () => {
    const limits = { timeout_seconds: 20, max_retries: 3 };
    await world.task('t', [{ uses: 'approval', with: { message: 'ok?' } }], limits);
    const failing = [{ uses: 'fail', with: { message: 'no' } }];
    await world.task('retried', failing, { ...limits, retry_delay_seconds: 10 });
    await world.start('a');
    const runId = await waiting();
    const retried = await world.request('retried');
    await world.untilState(retried, 'retrying');
    await world.setHold(true);
    await world.clock.advance(60 * second);
    expect([await stateOf(runId), await stateOf(retried)]).to.deep.equal(['waiting', 'retrying']);
    await world.setHold(false);
    expect((await world.untilEnded(runId)).state).to.equal('failed');
    expect((await world.untilEnded(retried)).state).to.equal('failed');
  });

  it('accepts calls from outside at once, and continues at the release', async () => {
    await world.task('called', [hold]);
    const steps = {
      event: { uses: 'wait.event', with: { topic: 'paid', timeout_seconds: 30 } },
      child: { uses: 'tasks.run', with: { task_id: 'called', wait: true } },
      approval: { uses: 'approval', with: { message: 'ok?', timeout_seconds: 30 } },
    };
    await world.start('a');
    const runs = new Map<string, string>();
    for (const [kind, step] of Object.entries(steps)) {
      await world.task(kind, [step, after]);
      runs.set(kind, await waiting(kind));
    }
    await world.setHold(true);
    const context = world.world.context();
    const event = { topic: 'paid', payload: {}, source_agent_id: 'agent-1' };
    await publishEvent(world.world.store, event, [], context);
    world.gates.get('h')?.resolve();
    const approved = runs.get('approval') ?? '';
    const wait = (await world.run(approved)).waits[0]?.wait_id ?? '';
    const by = { kind: 'approval', agent_id: newId(0) } as const;
    const answered = { id: wait, run_id: approved, step: 'step_0' };
    await endWaitCommand(world.world.store, answered, { by, result: {} }, world.world.context());
    await world.clock.advance(60 * second);
    for (const [kind, runId] of runs) {
      expect(await stateOf(runId), kind).to.equal('queued');
      expect(await world.typesOf(runId), kind).to.satisfy(
        (types: readonly string[]) => types.at(-1) === 'StepResumed',
      );
    }
    await world.setHold(false);
    for (const runId of runs.values()) await world.untilState(runId, 'running');
  });

  it('does not count an event after its limit, although the hold keeps it waiting', async () => {
    await world.task('t', [{ uses: 'wait.event', with: { topic: 'paid', timeout_seconds: 30 } }]);
    await world.start('a');
    const runId = await waiting();
    await world.setHold(true);
    await world.clock.advance(60 * second);
    const event = { topic: 'paid', payload: {}, source_agent_id: 'agent-1' };
    await publishEvent(world.world.store, event, [], world.world.context());
    await world.world.idle();
    expect(await stateOf(runId)).to.equal('waiting');
    await world.setHold(false);
    await world.untilEnded(runId);
    expect((await world.resumptionsOf(runId)).map(({ by }) => by.kind)).to.deep.equal(['timeout']);
  });

  it('gives its job to no worker, but accepts the result of a job that a worker has', async () => {
    await world.task('t', [{ id: 'job', uses: JOB_TOOL }]);
    const process = await world.start('a');
    const worker = new JobWorker(world);
    const [first, other] = [await waiting(), await waiting()];
    const job = await worker.poll(process);
    if (job === null) throw new Error('there is no job');
    expect(job.run_id).to.equal(first);
    await world.setHold(true);
    expect(await worker.poll(process)).to.equal(null);
    expect(await worker.finish(process, job, { result: 1 })).to.equal(null);
    await world.clock.advance(second);
    expect([await stateOf(first), await stateOf(other)]).to.deep.equal(['queued', 'waiting']);
    await world.setHold(false);
    expect((await world.untilEnded(first)).state).to.equal('succeeded');
    expect(await worker.poll(process)).to.have.property('run_id', other);
  });

  it('is canceled at once with its children, so none of them starts at the release', async () => {
    await world.task('child', [{ uses: 'sleep', with: { seconds: 5 } }, after]);
    await world.task('t', [{ uses: 'tasks.run', with: { task_id: 'child', wait: true } }]);
    await world.start('a');
    const runId = await waiting();
    const [child = ''] = await world.runsOf('child');
    await world.untilState(child, 'waiting');
    await world.setHold(true);
    await world.cancel(runId);
    await world.clock.advance(second);
    expect([await stateOf(runId), await stateOf(child)]).to.deep.equal(['canceled', 'canceled']);
  });
});
