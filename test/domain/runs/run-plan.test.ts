import { expect } from 'chai';
import type { JsonObject } from '../../../domain/json.ts';
import { compilePipeline } from '../../../domain/pipeline/compile.ts';
import { planOf, type PlannedRun } from '../../../domain/runs/run-plan.ts';
import type { Wait } from '../../../domain/runs/run-waits.ts';
import { stepEnd } from '../../projections/recorded.ts';

const at = '2026-03-01T08:00:00.000Z';
const sequence = [
  { id: 'a', uses: 'echo' },
  { id: 'b', uses: 'echo' },
  { id: 'c', uses: 'echo' },
];
const graph = [
  { id: 'a', uses: 'echo' },
  { id: 'b', uses: 'echo', needs: ['a'], on_error: 'continue' },
  { id: 'c', uses: 'echo', needs: ['a'] },
  { id: 'd', uses: 'echo', needs: ['b', 'c'] },
];
const group = [
  {
    id: 'g',
    parallel: [
      { id: 'x', uses: 'echo' },
      { id: 'y', uses: 'echo' },
    ],
  },
  { id: 'last', uses: 'echo' },
];
const each = [{ id: 'e', uses: 'echo', for_each: [1, 2, 3] }];

const waitOf = (step: string, more: Partial<Wait> = {}): Wait => ({
  step,
  wait_id: `wait-${step}`,
  attempt: 1,
  waits_for: { kind: 'timer', seconds: 5 },
  since: at,
  until: at,
  resumed: null,
  ...more,
});

const ends = (...names: readonly string[]) => names.map((name) => stepEnd(name));
const failed = (name: string, attempt = 1) => stepEnd(name, { status: 'failed', attempt });

function plan(pipeline: readonly object[], run: Partial<PlannedRun>) {
  const compiled = compilePipeline({ pipeline } as unknown as JsonObject);
  expect(compiled.error).to.equal(null);
  return planOf(compiled, {
    state: 'running',
    attempt: 1,
    steps: [],
    reused: 0,
    waits: [],
    ...run,
  });
}

/** Each step as `step state`. */
const states = (pipeline: readonly object[], run: Partial<PlannedRun>): readonly string[] =>
  plan(pipeline, run).map(({ step, state }) => `${step} ${state}`);

describe('the plan of a run', () => {
  it('has each step with its tool, its group and its needs, in the order of the pipeline', () => {
    const bare = { state: 'pending', needs: [] };
    expect(plan(group, { state: 'queued' })).to.deep.equal([
      { ...bare, step: 'g', uses: null, group: null },
      { ...bare, step: 'x', uses: 'echo', group: 'g' },
      { ...bare, step: 'y', uses: 'echo', group: 'g' },
      { ...bare, step: 'last', uses: 'echo', group: null, needs: ['g'] },
    ]);
    expect(plan(graph, {}).map(({ needs }) => needs)).to.deep.equal([[], ['a'], ['a'], ['b', 'c']]);
  });

  it('distinguishes a sequence from steps that all start at once', () => {
    expect(plan(sequence, {}).map(({ needs }) => needs)).to.deep.equal([[], ['a'], ['b']]);
    const atOnce = sequence.map((step) => ({ ...step, needs: [] }));
    expect(plan(atOnce, {}).map(({ needs }) => needs)).to.deep.equal([[], [], []]);
  });

  it('of a sequence has one running step, the first that has not ended', () => {
    const steps = [stepEnd('a', { status: 'skipped' })];
    expect(states(sequence, { steps })).to.deep.equal(['a skipped', 'b running', 'c pending']);
  });

  it('has no running step unless the run is running', () => {
    for (const state of ['queued', 'retrying', 'canceled', 'waiting'] as const) {
      const run = { state, steps: ends('a') };
      expect(states(sequence, run), state).to.deep.equal(['a succeeded', 'b pending', 'c pending']);
    }
  });

  it('of a graph has all running steps whose needs have ended', () => {
    expect(states(graph, {})).to.deep.equal(['a running', 'b pending', 'c pending', 'd pending']);
    const half = { steps: ends('a') };
    expect(states(graph, half)).to.include.members(['b running', 'c running', 'd pending']);
    const continued = { steps: [...ends('a', 'c'), failed('b')] };
    expect(states(graph, continued)).to.include.members(['b failed', 'd running']);
  });

  it('shows the steps of a group with it', () => {
    const half = states(group, { steps: ends('x') });
    expect(half).to.deep.equal(['g running', 'x succeeded', 'y running', 'last pending']);
    const skipped = states(group, { steps: [stepEnd('g', { status: 'skipped' })] });
    expect(skipped).to.deep.equal(['g skipped', 'x skipped', 'y skipped', 'last running']);
  });

  it('shows items that have ended or wait, by number', () => {
    const steps = ends('e[1]', 'e[0]');
    expect(states(each, { steps })).to.deep.equal([
      'e running',
      'e[0] succeeded',
      'e[1] succeeded',
    ]);
    const run = { state: 'waiting', steps: ends('e[0]'), waits: [waitOf('e[1]')] } as const;
    expect(states(each, run)).to.deep.equal(['e waiting', 'e[0] succeeded', 'e[1] waiting']);
  });

  it('shows a step that waits, even while others run, until a worker continues it', () => {
    const waits = [waitOf('x')];
    const beside = states(group, { waits });
    expect(beside).to.deep.equal(['g running', 'x waiting', 'y running', 'last pending']);
    const left = states(group, { state: 'waiting', steps: ends('y'), waits });
    expect(left).to.deep.equal(['g waiting', 'x waiting', 'y succeeded', 'last pending']);
    const resumed = [waitOf('a', { resumed: { by: { kind: 'timer' } } })];
    expect(states(sequence, { state: 'queued', waits: resumed })).to.include('a waiting');
    expect(states(sequence, { waits: resumed })).to.include('a running');
  });

  it('shows a step as running while the tool is called whose callback it awaits', () => {
    const waits = [
      waitOf('a', { waits_for: { kind: 'callback', token_hashes: ['ab'], calling: true } }),
    ];
    expect(states(sequence, { waits })).to.include('a running');
    expect(states(sequence, { state: 'queued', waits })).to.include('a waiting');
  });

  it('shows a step as failed until it runs again', () => {
    const steps = [...ends('a'), failed('b')];
    for (const state of ['failed', 'retrying', 'queued', 'running'] as const) {
      expect(states(sequence, { state, steps }), state).to.include('b failed');
    }
    expect(states(sequence, { steps, attempt: 2 })).to.include('b running');
  });

  it('shows a step as failed with an item, or a step of the group, that failed', () => {
    const items = states(each, { state: 'failed', steps: [...ends('e[0]'), failed('e[1]')] });
    expect(items).to.deep.equal(['e failed', 'e[0] succeeded', 'e[1] failed']);
    const parts = states(group, { state: 'failed', steps: [failed('x')] });
    expect(parts).to.deep.equal(['g failed', 'x failed', 'y pending', 'last pending']);
  });

  it('shows steps whose results come from a retried run as reused', () => {
    const run = { steps: [...ends('a'), stepEnd('b', { status: 'skipped' }), ...ends('c')] };
    expect(states(sequence, { ...run, reused: 2 })).to.deep.equal([
      'a reused',
      'b reused',
      'c succeeded',
    ]);
  });

  it("has the arguments' hash of steps that have ended or wait, not of those that run again", () => {
    const arguments_hash = 'ab';
    const steps = [stepEnd('a', { arguments_hash }), { ...failed('b'), arguments_hash }];
    const waits = [waitOf('c', { arguments_hash: 'cd' })];
    const hashes = plan(sequence, { steps, waits, attempt: 2 }).map((step) => step.arguments_hash);
    expect(hashes).to.deep.equal(['ab', undefined, 'cd']);
  });
});
