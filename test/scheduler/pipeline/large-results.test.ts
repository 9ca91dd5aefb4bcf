import { expect } from 'chai';
import type { Artifact } from '../../../domain/artifacts/artifact.ts';
import { artifactOf } from '../../../domain/artifacts/artifact.ts';
import { RefusalError } from '../../../domain/errors.ts';
import type { StepEnd } from '../../../domain/events/catalogue.ts';
import { MemoryArtifacts } from '../../support/memory-artifacts.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { execute, recorder, type Given, type Went } from './pipeline-execution-harness.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const RUN = 'run-1';

describe('a result that is too large for the log', () => {
  const large = 'x'.repeat(300 * KIB);
  const big = { id: 'big', uses: 'echo', with: { rows: '${params.large}' } };
  let store: MemoryArtifacts;

  beforeEach(() => {
    store = new MemoryArtifacts();
  });

  const run = (given: Omit<Given, 'params'> & Partial<Pick<Given, 'params'>>): Promise<Went> =>
    execute({ artifacts: { store, maxBytes: 4 * MIB }, params: { large }, ...given });
  const resultOf = ({ ends }: Went, step: string): unknown =>
    ends.find((end) => end.step === step)?.result;
  const referenceTo = (value: unknown): Artifact =>
    artifactOf(new TextEncoder().encode(JSON.stringify(value)));

  it('becomes an artifact, which later steps and the output refer to', async () => {
    const seen = { id: 'seen', uses: 'echo', with: '${steps.big.size_bytes}' };
    const went = await run({ pipeline: [big, seen] });
    const reference = referenceTo({ rows: large });
    expect(resultOf(went, 'big')).to.deep.equal(reference);
    expect(resultOf(went, 'seen')).to.equal(reference.size_bytes);
    expect(store.jsonOf(RUN, reference.artifact)).to.deep.equal({ rows: large });
    expect(went.output).to.have.deep.nested.property('steps.big', reference);
  });

  it('is written before the event that refers to it', async () => {
    const known: number[] = [];
    const { run: tool } = recorder();
    const record = async (ends: readonly StepEnd[]): Promise<void> => {
      if (ends.some(({ step }) => step === 'big')) known.push(store.contents.size);
    };
    await run({ pipeline: [big, { uses: 'later' }], tools: { later: tool }, record });
    expect(known).to.deep.equal([1]);
  });

  it('contains no secret', async () => {
    const args = { rows: '${params.large}', key: '${secrets.KEY}' };
    const pipeline = [{ ...big, uses: 'reveal', with: args }];
    const went = await run({ pipeline, secrets: { KEY: 'open sesame' } });
    const { artifact } = resultOf(went, 'big') as Artifact;
    expect(store.jsonOf(RUN, artifact)).to.deep.equal({ rows: large, key: '***' });
  });

  it('keeps its reference even if a short secret occurs in its digits', async () => {
    const again = { id: 'again', uses: 'echo', with: '${steps.big}' };
    const key = { id: 'key', uses: 'reveal', with: '${secrets.KEY}' };
    const digit = referenceTo({ rows: large }).artifact.slice(0, 1);
    const went = await run({ pipeline: [big, again, key], secrets: { KEY: digit } });
    expect(resultOf(went, 'again')).to.deep.equal(referenceTo({ rows: large }));
    expect(resultOf(went, 'key')).to.equal('***');
  });

  it('is an artifact of each item of a for_each', async () => {
    const items = ['a', 'b'].map((letter) => letter.repeat(300 * KIB));
    const went = await run({
      params: { items },
      pipeline: [{ id: 'each', uses: 'echo', for_each: '${params.items}', with: '${item}' }],
    });
    expect(went.output).to.have.deep.nested.property('steps.each', items.map(referenceTo));
    expect(store.namesOf(RUN)).to.have.members(items.map((item) => referenceTo(item).artifact));
  });

  it('is any result over 1 KiB once the log of the run is full', async () => {
    const items = Array.from({ length: 90 }, (_, index) => `${index}`.padEnd(200 * KIB, '.'));
    const went = await run({
      params: { items },
      pipeline: [{ uses: 'echo', for_each: '${params.items}', with: '${item}' }],
    });
    expect(resultOf(went, 'step_0[0]')).to.equal(items[0]);
    expect(resultOf(went, 'step_0[89]')).to.deep.equal(referenceTo(items[89]));
    expect(JSON.stringify(went.ends).length).to.be.below(17 * MIB);
  });

  it('fails its step permanently if the quota of its namespace is used up', async () => {
    const requireRoom = async (namespace: string, bytes: number): Promise<void> => {
      const message = `${namespace} may not keep ${bytes} bytes more`;
      throw new RefusalError('STATE_CONFLICT', message);
    };
    const artifacts = { store, maxBytes: 4 * MIB, requireRoom };
    const went = await run({ pipeline: [{ ...big, max_retries: 3 }], artifacts });
    const ofBig = went.ends.filter(({ step }) => step === 'big');
    expect(ofBig.map(({ status }) => status)).to.deep.equal(['failed']);
    expect(ofBig[0]?.error).to.match(
      /too large for the log, and \w+ may not keep 30\d+ bytes more/,
    );
    expect(store.contents.size).to.equal(0);
  });

  it('is cut if it is larger than an artifact may be', async () => {
    const went = await run({ pipeline: [big], artifacts: { store, maxBytes: 299 * KIB } });
    expect(resultOf(went, 'big')).to.include({ truncated: true });
    expect(store.contents.size).to.equal(0);
  });

  it('is cut once the run has artifacts of 1 GiB', async () => {
    const reference = { ...referenceTo('earlier'), size_bytes: 1024 * MIB };
    const pipeline = [{ id: 'first', uses: 'echo', with: 1 }, big];
    const first = await run({ pipeline: pipeline.slice(0, 1) });
    const finished = first.ends.map((end) => ({ ...end, result: reference }));
    const went = await run({ pipeline, finished });
    expect(resultOf(went, 'big')).to.include({ truncated: true });
    expect(store.contents.size).to.equal(0);
  });

  describe('while the store is unavailable,', () => {
    const slow = { id: 'slow', uses: 'slow', with: { rows: '${params.large}' } };

    it('is written again without another call of the tool', async () => {
      const clock = new VirtualClock();
      const tool = recorder();
      store.failing = 5;
      const went = run({ pipeline: [slow], tools: { slow: tool.run }, clock });
      await clock.advance(60_000);
      expect(resultOf(await went, 'slow')).to.deep.equal(referenceTo({ rows: large }));
      expect(tool.calls).to.have.lengthOf(1);
    });

    it('fails the step in the end, with an error that allows a retry of the run', async () => {
      const clock = new VirtualClock();
      store.failing = Infinity;
      const went = run({ pipeline: [big], clock });
      await clock.advance(60_000);
      const { result } = await went;
      const error =
        'its result is too large for the log, and could not reach the store of the test: wait';
      expect(result).to.include({ kind: 'failed', step: 'big', error, retryable: true });
    });

    it('is abandoned when the run is canceled', async () => {
      const clock = new VirtualClock();
      const controller = new AbortController();
      store.failing = Infinity;
      const went = run({ pipeline: [big], clock, signal: controller.signal });
      await clock.advance(200);
      controller.abort(new Error('canceled'));
      expect((await went).result.kind).to.equal('aborted');
    });
  });
});
