import { expect } from 'chai';
import { taskDefaults, type TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import type { LiveTask } from '../../../domain/tasks/task.ts';
import { instantRuns, runsStartingWithEnd } from '../../../scheduler/runs/instant-runs.ts';
import type { QueuedRun } from '../../../scheduler/runs/queued-run.ts';
import { basicTools } from '../../../scheduler/tools/basic-tools.ts';
import { ToolRegistry } from '../../../scheduler/tools/registry.ts';

describe('an instant run', () => {
  const tools = new ToolRegistry();
  const schema = { type: 'object' };
  tools.register({
    name: 'quick',
    description: 'quick',
    schema,
    synchronous: true,
    run: () => ({}),
  });
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
    return runsStartingWithEnd({ peek: () => task }, tools, () => isInstant)(run);
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

  it('has its task in memory', () => {
    const run = { taskId: 't', taskRevision: 3, isNew: true } as QueuedRun;
    expect(runsStartingWithEnd({ peek: () => undefined }, tools, () => true)(run)).to.equal(false);
  });
});
