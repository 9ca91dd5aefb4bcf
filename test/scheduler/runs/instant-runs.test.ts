import { expect } from 'chai';
import { taskDefaults, type TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import type { StepEnd } from '../../../domain/events/catalogue.ts';
import { noSteps, withEnds } from '../../../domain/runs/run-steps.ts';
import type { KnownRun } from '../../../domain/runs/run.ts';
import type { LiveTask } from '../../../domain/tasks/task.ts';
import { instantRuns, runsStartingWithEnd } from '../../../scheduler/runs/instant-runs.ts';
import type { QueuedRun } from '../../../scheduler/runs/queued-run.ts';
import { basicTools } from '../../../scheduler/tools/basic-tools.ts';
import { ToolRegistry } from '../../../scheduler/tools/registry.ts';
import { workerTool } from '../../../scheduler/tools/worker-tools.ts';

const schema = { type: 'object' };
const external = workerTool({
  name: 'emails.send',
  description: 'sends',
  schema,
  schema_since: '2026-03-01T09:00:00.000Z',
});

describe('an instant run', () => {
  const tools = new ToolRegistry();
  tools.register({
    name: 'quick',
    description: 'quick',
    schema,
    synchronous: true,
    run: () => ({}),
  });
  tools.register(external.tool);
  tools.register({ name: 'slow', description: 'slow', schema, run: () => Promise.resolve({}) });

  const run = { taskId: 't', taskRevision: 3 } as QueuedRun;

  const isInstant = (pipeline: unknown, changes: Partial<TaskDefinition> = {}): boolean => {
    const definition = { ...taskDefaults, payload: { pipeline }, ...changes };
    const task = { definition } as unknown as LiveTask;
    const peek = (id: string, revision: number): LiveTask | undefined =>
      id === 't' && revision === 3 ? task : undefined;
    return instantRuns({ peek }, tools)(run);
  };

  it('has a few steps with synchronous tools', () => {
    expect(isInstant([{ uses: 'quick' }, { uses: 'quick' }])).to.equal(true);
    expect(isInstant([])).to.equal(true);
    expect(isInstant(Array.from({ length: 11 }, () => ({ uses: 'quick' })))).to.equal(false);
  });

  it('has no step that may wait, has items or is unknown', () => {
    expect(isInstant([{ uses: 'quick' }, { uses: 'slow' }])).to.equal(false);
    expect(isInstant([{ uses: 'unheard-of' }])).to.equal(false);
    expect(isInstant([{ uses: 'quick', for_each: '${params.list}' }])).to.equal(false);
    expect(isInstant([{ parallel: [{ uses: 'quick' }] }])).to.equal(false);
  });

  it('may leave steps to workers', () => {
    expect(isInstant([{ uses: 'quick' }, { uses: 'emails.send' }])).to.equal(true);
  });

  it('needs no key', () => {
    const pipeline = [{ uses: 'quick' }];
    expect(isInstant(pipeline, { concurrency_key: 'k' })).to.equal(false);
    expect(isInstant(pipeline, { overlap_policy: 'queue' })).to.equal(false);
  });

  it('may have a key that it was granted', () => {
    const definition = { ...taskDefaults, payload: { pipeline: [] }, concurrency_key: 'k' };
    const task = { definition } as unknown as LiveTask;
    let isGranted = false;
    const keyed = instantRuns({ peek: () => task }, tools, () => isGranted);
    expect(keyed(run)).to.equal(false);
    expect(keyed(run, true)).to.equal(true);
    isGranted = true;
    expect(keyed(run)).to.equal(true);
  });

  it('has its task in memory', () => {
    expect(instantRuns({ peek: () => undefined }, tools)(run)).to.equal(false);
  });
});

describe('a run that is executed before its start is written', () => {
  const tools = new ToolRegistry();
  for (const tool of basicTools) tools.register(tool);

  const startsWithEnd = (pipeline: unknown, isNew: boolean, isInstant = true): boolean => {
    const task = { definition: { ...taskDefaults, payload: { pipeline } } } as unknown as LiveTask;
    const run = { taskId: 't', taskRevision: 3, isNew } as QueuedRun;
    return runsStartingWithEnd({ peek: () => task }, tools, () => isInstant)(run, null);
  };
  const constant = [{ uses: 'echo', with: { text: 'as it is' }, if: true }];

  it('evaluates no expression', () => {
    expect(startsWithEnd(constant, false)).to.equal(true);
    expect(startsWithEnd([], false)).to.equal(true);
  });

  it('may evaluate expressions if it was requested while this process followed the log', () => {
    const evaluating = [
      [{ uses: 'echo', with: { text: 'at ${now}' } }],
      [{ uses: 'echo', if: 'params.there' }],
      [{ uses: 'transform', with: { expression: 'length(@)', input: [1] } }],
    ];
    for (const pipeline of evaluating) {
      expect(startsWithEnd(pipeline, true)).to.equal(true);
      expect(startsWithEnd(pipeline, false)).to.equal(false);
    }
  });

  it('never waits', () => {
    expect(startsWithEnd(constant, true, false)).to.equal(false);
  });

  describe('and continues after a wait', () => {
    const job = { id: 'job', uses: 'emails.send' };
    const slow = { id: 'slow', uses: 'http.request' };
    const echo = { id: 'echo', uses: 'echo', with: { sent: '${steps.job}' } };

    /** @param resumed how the wait of the step `job` has ended */
    const continues = (pipeline: unknown, resumed: object, ended: readonly string[] = []) => {
      const task = {
        definition: { ...taskDefaults, payload: { pipeline } },
      } as unknown as LiveTask;
      const run = { taskId: 't', taskRevision: 3, isNew: true } as QueuedRun;
      const waits = [{ step: 'job', resumed }];
      const ends = ended.map((step) => ({ step, status: 'succeeded' }) as StepEnd);
      const known = { waits, steps: withEnds(noSteps, ends) } as unknown as KnownRun;
      return runsStartingWithEnd({ peek: () => task }, tools, () => false)(run, known);
    };

    it('has only steps left that return at once', () => {
      expect(continues([job, echo], { result: {} })).to.equal(true);
      expect(continues([job, slow], { result: {} })).to.equal(false);
      expect(continues([slow, job], { result: {} }, ['slow'])).to.equal(true);
      expect(continues([slow, job], { result: {} })).to.equal(false);
    });

    it('need not repeat a failed call', () => {
      const called = { ...slow, id: 'job', wait_for: 'callback' };
      expect(continues([called], { error: 'it failed', retryable: true })).to.equal(false);
      expect(continues([called], { result: {} })).to.equal(true);
    });
  });

  it('has its task in memory', () => {
    const run = { taskId: 't', taskRevision: 3, isNew: true } as QueuedRun;
    expect(runsStartingWithEnd({ peek: () => undefined }, tools, () => true)(run, null)).to.equal(
      false,
    );
  });
});
