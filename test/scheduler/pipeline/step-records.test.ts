import { expect } from 'chai';
import { createHash } from 'node:crypto';
import { argumentsHash } from '../../../domain/runs/arguments-hash.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { execute } from './pipeline-execution-harness.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

describe("the hash of a step's arguments, in the record of its end", () => {
  it('is that of their canonical JSON', async () => {
    const { ends } = await execute({
      params: { b: [1, { z: null, '10': 'ten', '9': '"' }] },
      pipeline: [{ uses: 'echo', with: { b: '${params.b}', a: 0.5 } }],
    });
    const canonical = '{"a":0.5,"b":[1,{"10":"ten","9":"\\"","z":null}]}';
    expect(ends[0]?.arguments_hash).to.equal(sha256(canonical));
  });

  it('is the same in each run with constant arguments', async () => {
    const pipeline = [{ uses: 'echo', with: { b: 1, a: 2 } }];
    for (const { ends } of [await execute({ pipeline }), await execute({ pipeline })]) {
      expect(ends[0]?.arguments_hash).to.equal(sha256('{"a":2,"b":1}'));
    }
  });

  it('is taken with secrets masked, even if an argument just repeats one', async () => {
    const { ends } = await execute({
      secrets: { TOKEN: 'a-very-secret-token' },
      pipeline: [
        { uses: 'reveal', with: { token: '${secrets.TOKEN}' } },
        { uses: 'echo', with: { token: 'a-very-secret-token' } },
      ],
    });
    const masked = sha256('{"token":"***"}');
    expect(ends.map(({ arguments_hash }) => arguments_hash)).to.deep.equal([masked, masked]);
  });

  it('is also recorded for a failed step, and for each item', async () => {
    const { ends } = await execute({
      pipeline: [
        { id: 'each', uses: 'echo', with: '${item}', for_each: ['x', 'y'] },
        { id: 'bad', uses: 'fail', with: { message: 'no' } },
      ],
    });
    const hashes = Object.fromEntries(ends.map((end) => [end.step, end.arguments_hash]));
    expect(hashes).to.deep.equal({
      'each[0]': sha256('"x"'),
      'each[1]': sha256('"y"'),
      each: undefined,
      bad: sha256('{"message":"no"}'),
    });
  });

  it('is missing if they were not evaluated', async () => {
    const { ends } = await execute({
      pipeline: [
        { uses: 'echo', with: 1, if: false },
        { uses: 'echo', with: '${foo(}' },
      ],
    });
    expect(ends.map(({ status }) => status)).to.deep.equal(['skipped', 'failed']);
    for (const end of ends) expect(end).to.not.have.property('arguments_hash');
  });

  it('is taken before the tool can change them', async () => {
    const { ends } = await execute({
      params: { n: 1 },
      pipeline: [{ uses: 'greedy', with: { n: '${params.n}' } }],
      tools: {
        greedy: async (args) => {
          (args as { n: number }).n = 2;
          await Promise.resolve();
        },
      },
    });
    expect(ends[0]?.arguments_hash).to.equal(argumentsHash({ n: 1 }));
  });
});

describe('a step sees its start as now', () => {
  it('in its condition and its arguments, and its end records it', async () => {
    const clock = new VirtualClock();
    const start = clock.now();
    const { ends } = await execute({
      clock,
      pipeline: [
        { id: 'a', uses: 'late', with: '${now}', if: "now != ''" },
        { id: 'b', uses: 'echo', with: '${now}' },
      ],
      tools: {
        late: async (args) => {
          await clock.advance(1500);
          return args;
        },
      },
    });
    const first = new Date(start).toISOString();
    const second = new Date(start + 1500).toISOString();
    expect(ends.map(({ result }) => result)).to.deep.equal([first, second]);
    expect(ends.map(({ now }) => now)).to.deep.equal([first, second]);
    expect(ends.map(({ started_at }) => started_at)).to.deep.equal([first, second]);
  });

  it('and records no time if it has no expression', async () => {
    const { ends } = await execute({
      pipeline: [
        { uses: 'echo', with: 1 },
        { uses: 'echo', with: 1, for_each: [1] },
        { id: 'group', parallel: [{ uses: 'echo', with: 1 }] },
      ],
    });
    expect(ends).to.have.length(5);
    for (const end of ends) expect(end).to.not.have.property('now');
  });
});

describe('a suspended step', () => {
  it('records the hash with its wait, and with its end on another worker', async () => {
    const pipeline = [{ id: 'nap', uses: 'sleep', with: { seconds: '${params.n}' } }];
    const clock = new VirtualClock();
    const since = new Date(clock.now()).toISOString();
    const { records } = await execute({ clock, params: { n: 60 }, pipeline });
    const [suspended] = records;
    if (suspended?.type !== 'RunStepSuspended') throw new Error('it was not suspended');
    const arguments_hash = argumentsHash({ seconds: 60 });
    expect(suspended.data).to.include({ arguments_hash, since });
    await clock.advance(60_000);
    const resumed = { by: { kind: 'timer' as const }, result: 1 };
    const { task_id: _, ...wait } = suspended.data;
    const { ends } = await execute({ clock, pipeline, waits: [{ ...wait, resumed }] });
    expect(ends[0]).to.include({ result: 1, arguments_hash, now: since, started_at: since });
  });

  it('evaluates its arguments again for another try, with the same now', async () => {
    const external = { description: '', schema: {}, isExternal: true as const, run: () => null };
    const pipeline = [{ uses: 'far', with: '${now}', max_retries: 1 }];
    const clock = new VirtualClock();
    const since = new Date(clock.now()).toISOString();
    const { records } = await execute({ clock, pipeline, tools: { far: external } });
    const [first] = records;
    if (first?.type !== 'RunStepSuspended') throw new Error('it was not suspended');
    await clock.advance(5000);
    const resumed = { by: { kind: 'job' as const }, error: 'no', retryable: true };
    const { task_id: _, ...wait } = first.data;
    const waits = [{ ...wait, resumed }];
    const { records: later } = await execute({ clock, pipeline, waits, tools: { far: external } });
    const [second] = later;
    if (second?.type !== 'RunStepSuspended') throw new Error('it was not tried again');
    expect(second.data).to.deep.include({ since, tries: 2 });
    expect(second.data.waits_for).to.include({ arguments: since });
  });
});
