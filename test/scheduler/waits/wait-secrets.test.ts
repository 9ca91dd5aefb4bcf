import { expect } from 'chai';
import { publishEvent } from '../../../domain/topics/publishing.ts';
import { JobWorker } from './job-worker.ts';
import { JOB_TOOL } from './waits-process.ts';
import { WaitsWorld } from './waits-world.ts';

const SECRET = 'hush-hush-7';

describe('a secret of a run that waits', () => {
  let world: WaitsWorld;

  beforeEach(async () => {
    world = await WaitsWorld.open();
    world.secretValues.set('TOKEN', SECRET);
  });
  afterEach(() => world.close());

  const reads = { id: 'reads', uses: 'reveal', with: '${secrets.TOKEN}' };

  const waiting = async (...steps: readonly object[]): Promise<string> => {
    await world.task('t', [reads, ...steps]);
    const runId = await world.request('t');
    await world.untilState(runId, 'waiting');
    return runId;
  };

  /** The content of all runs' streams, as an auditor reads it. */
  const recorded = async (): Promise<string> => JSON.stringify(await world.world.events('run-'));

  const publish = async (payload: { readonly said: string }): Promise<void> => {
    const event = { topic: 'said', payload, source_agent_id: 'agent-1' };
    await publishEvent(world.world.store, event, [], world.world.context());
    await world.world.idle();
  };

  it('is masked in an event that ends the wait', async () => {
    await world.start('a');
    const runId = await waiting({ id: 'said', uses: 'wait.event', with: { topic: 'said' } });
    await publish({ said: `it is ${SECRET}` });
    await world.untilEnded(runId);
    const [resumed] = await world.resumptionsOf(runId);
    expect(resumed?.result).to.have.deep.property('payload', { said: 'it is ***' });
    expect(await recorded()).not.to.contain(SECRET);
  });

  for (const [how, step] of [
    ['output', { id: 'tells', uses: 'echo', with: `it is ${SECRET}` }],
    ['error', { id: 'tells', uses: 'fail', with: { message: `it is ${SECRET}` } }],
  ] as const) {
    it(`is masked in the ${how} of a child that does not know it`, async () => {
      await world.task('child', [step]);
      await world.start('a');
      await world.task('t', [reads, { uses: 'tasks.run', with: { task_id: 'child', wait: true } }]);
      const runId = await world.request('t');
      await world.untilEnded(runId);
      const [resumed] = await world.resumptionsOf(runId);
      const outcome = JSON.stringify(resumed?.result ?? resumed?.error);
      expect(outcome).to.contain('it is ***').and.not.to.contain(SECRET);
    });
  }

  it('may not be part of the condition for an event', async () => {
    await world.start('a');
    const condition = { topic: 'said', if: "event.payload.said == '${secrets.TOKEN}'" };
    await world.task('t', [{ id: 'said', uses: 'wait.event', with: condition }]);
    const runId = await world.request('t');
    const { state } = await world.untilEnded(runId);
    expect(state).to.equal('failed');
    expect(await recorded())
      .to.contain('the secret TOKEN cannot be used in this argument of wait.event')
      .and.not.to.contain(SECRET);
  });

  it('is masked in everything that a worker reports', async () => {
    const process = await world.start('a');
    const runId = await waiting({ id: 'job', uses: JOB_TOOL, max_retries: 1 });
    const worker = new JobWorker(world);
    const first = await worker.poll(process);
    if (first === null) throw new Error('there is no job');
    const line = { level: 'info', message: SECRET, data: { [SECRET]: SECRET } };
    await worker.heartbeat(process, first, { progress: 0.5, log: [line] });
    const reason = `because of ${SECRET}`;
    const failed = { error: `no ${SECRET}`, retryable: true };
    expect(await worker.finish(process, first, failed, { reason })).to.equal(null);
    await world.clock.advance(1000);
    const again = await worker.poll(process);
    if (again === null) throw new Error('there is no second try');
    await worker.finish(process, again, { result: { [SECRET]: [SECRET] } }, { reason });
    expect((await world.untilEnded(runId)).state).to.equal('succeeded');
    const resumed = await world.resumptionsOf(runId);
    expect(resumed[0]?.error).to.equal('no ***');
    expect(resumed[1]?.result).to.deep.equal({ '***': ['***'] });
    expect(await recorded()).not.to.contain(SECRET);
  });
});
