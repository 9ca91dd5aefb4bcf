import { expect } from 'chai';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { BEGINNING } from '../../../domain/event-store.ts';
import type { StreamShare } from '../../../domain/stream-share.ts';
import { silent } from '../../../observability/telemetry.ts';
import type { Projection, ReadModel, ViewWriter } from '../../../projections/read-model.ts';
import { DatabaseSync } from '@photostructure/sqlite';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import {
  at,
  keysOf,
  rejectsWith,
  thing,
  thingsProjection,
  writerOf,
  type Thing,
  type Written,
} from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('a generation that is filled in shares', () => {
  const directory = useTemporaryDirectory();
  let readModel: ReadModel;
  let projection: Projection<Thing>;
  beforeEach(async () => {
    readModel = await openSqliteReadModel({ directory: directory(), telemetry: silent });
    projection = { ...thingsProjection(), ownStreams: true, tallies: [{ fields: ['team'] }] };
  });
  afterEach(() => readModel.close());
  leavesNothingOpen();

  const of = 3;
  const fileOf = (share: number): string => {
    const part = share === 0 ? '' : `.share${String(share)}`;
    return join(directory(), `${projection.name}-s1-g1${part}.db`);
  };
  const open = (index: number, fence = 1): Promise<ViewWriter> => {
    const share: StreamShare = { index, of };
    return readModel.openWriter(projection, { generation: 1, bulk: true, fence, share });
  };
  const first = (
    key: string,
    n: number,
    document: Thing,
  ): Written & { readonly isFirst: true } => ({
    ...thing(key, n, document),
    isFirst: true,
  });
  /** Writes two documents and the position of a share. */
  const fill = async (index: number, to = 20): Promise<void> => {
    const writer = await open(index);
    const documents = [
      first(`a${String(index)}`, 1 + index, { team: 'red', tags: ['both', `of ${String(index)}`] }),
      first(`b${String(index)}`, 4 + index, { team: index === 1 ? 'red' : 'blue', tags: ['both'] }),
    ];
    await writer.write({ documents, from: BEGINNING, to: at(to) });
    await writer.close();
  };
  const all = ['a0', 'a1', 'a2', 'b0', 'b1', 'b2'];
  const counted = (team: string): Promise<number> =>
    readModel.count(projection, [{ field: 'team', op: 'eq', value: team }]);

  it('has the documents and tallies of all shares, and continues from their position', async () => {
    for (const index of [0, 1, 2]) await fill(index);
    expect(await readModel.generations(projection)).to.deep.equal([1]);
    expect(await readModel.schemas(projection)).to.deep.equal([1]);
    const writer = await open(0);
    expect(writer.share).to.deep.equal({ index: 0, of });
    await writer.mergeShares?.();
    expect(writer.share).to.equal(null);
    expect(await writer.checkpoint()).to.equal(at(20));
    expect([fileOf(1), fileOf(2)].filter(existsSync)).to.deep.equal([]);
    // The writer continues with the documents of all shares. Events that were applied before change nothing.
    const documents = [thing('a1', 21, { team: 'blue' }), thing('b2', 6, { team: 'never' })];
    await writer.write({ documents, from: at(20), to: at(21) });
    await writer.finish();
    expect(await writer.count()).to.equal(6);
    await writer.close();
    await readModel.switchTo(projection, 1);
    const byName = [{ field: 'name', direction: 'ascending' }] as const;
    expect(await keysOf(readModel, projection, { sort: byName })).to.deep.equal(all);
    expect(await counted('red')).to.equal(3);
    expect(await counted('blue')).to.equal(3);
    expect(await readModel.count(projection, [])).to.equal(6);
    const has = (value: string): Promise<readonly string[]> =>
      keysOf(readModel, projection, { filters: [{ field: 'tags', op: 'has', value }] });
    expect(await has('both')).to.have.members(['a0', 'a2', 'b0', 'b1', 'b2']);
    expect(await has('of 2')).to.deep.equal(['a2']);
    expect((await readModel.get(projection, 'b1'))?.position).to.equal(at(5));
  });

  it('resumes each share, and the whole once they are merged', async () => {
    for (const index of [0, 1]) await fill(index, 31);
    await fill(2);
    const other = await open(2);
    expect(await other.checkpoint()).to.equal(at(20));
    const documents = [thing('a2', 30, { team: 'green' }), first('c2', 31, { team: 'green' })];
    await other.write({ documents, from: at(20), to: at(31) });
    await other.close();
    const taking = await open(0);
    await taking.mergeShares?.();
    // As if the process had died before deleting them.
    const left = await open(1);
    await left.close();
    await taking.close();
    expect(existsSync(fileOf(1))).to.equal(true);
    const again = await open(0);
    expect(again.share).to.equal(null);
    expect(existsSync(fileOf(1))).to.equal(false);
    await again.finish();
    expect((await again.page(null, 10)).map(({ key }) => key)).to.deep.equal([...all, 'c2'].sort());
    await again.close();
    await readModel.switchTo(projection, 1);
    expect(await counted('green')).to.equal(2);
    expect(await counted('red')).to.equal(3);
  });

  it('is not merged from shares at different positions', async () => {
    for (const index of [0, 1]) await fill(index);
    await fill(2, 21);
    const writer = await open(0);
    await rejectsWith('UNAVAILABLE', writer.mergeShares?.() ?? Promise.resolve());
    expect(await writer.count()).to.equal(2);
    await writer.close();
  });

  it('has no shares left from an earlier generation with its number, and none without a first share', async () => {
    await rejectsWith('FENCED', open(1));
    for (const index of [0, 1]) await fill(index);
    rmSync(fileOf(0));
    const writer = await open(0);
    await writer.close();
    expect(existsSync(fileOf(1))).to.equal(false);
  });

  it('merges all shares or none', async () => {
    for (const index of [0, 1]) await fill(index);
    const writer = await open(0);
    await rejectsWith('UNAVAILABLE', writer.mergeShares?.() ?? Promise.resolve());
    // The missing share was not created by the attempt. The file that follows is not a share either.
    expect(existsSync(fileOf(2))).to.equal(false);
    new DatabaseSync(fileOf(2)).exec('CREATE TABLE checkpoint (filling, position, landmark)');
    await rejectsWith('UNAVAILABLE', writer.mergeShares?.() ?? Promise.resolve());
    expect(writer.share).to.deep.equal({ index: 0, of });
    expect(await writer.count()).to.equal(2);
    expect(await writer.checkpoint()).to.equal(at(20));
    expect(existsSync(fileOf(1))).to.equal(true);
    await writer.close();
  });

  it('is restarted by a writer of the whole generation, or of other shares', async () => {
    for (const index of [0, 1, 2]) await fill(index);
    const whole = await writerOf(readModel, projection, { bulk: true });
    expect(await whole.checkpoint()).to.equal(BEGINNING);
    expect([fileOf(1), fileOf(2)].filter(existsSync)).to.deep.equal([]);
    await whole.close();
    await readModel.discard(projection, 1);
    await fill(0);
    const live = await writerOf(readModel, projection);
    expect(await live.checkpoint()).to.equal(BEGINNING);
    await live.close();
    await readModel.discard(projection, 1);
    await fill(0);
    const share = { index: 0, of: 2 };
    const options = { generation: 1, bulk: true, fence: 1, share };
    const others = await readModel.openWriter(projection, options);
    expect(await others.checkpoint()).to.equal(BEGINNING);
    await others.close();
  });

  it('is discarded with its shares', async () => {
    for (const index of [0, 1, 2]) await fill(index);
    await readModel.discard(projection, 1);
    expect(
      readdirSync(directory()).filter((name) => name.startsWith(projection.name)),
    ).to.deep.equal([]);
  });

  it('rejects a writer of a share once it is whole', async () => {
    for (const index of [0, 1, 2]) await fill(index);
    const unaware = await open(0, 2);
    const taking = await open(0);
    await taking.mergeShares?.();
    await taking.close();
    // The position is the same, but the content is different.
    const batch = { documents: [first('c0', 25, {})], from: at(20), to: at(40) };
    await rejectsWith('FENCED', unaware.write(batch));
    await unaware.close();
  });

  it('accepts no share once it is live', async () => {
    for (const index of [0, 1, 2]) await fill(index);
    const writer = await open(0);
    await writer.mergeShares?.();
    await writer.finish();
    await writer.close();
    await readModel.switchTo(projection, 1);
    await rejectsWith('FENCED', open(1));
    expect(existsSync(fileOf(1))).to.equal(false);
    expect(await readModel.liveGeneration(projection)).to.equal(1);
  });

  it('is not merged by an overtaken writer', async () => {
    for (const index of [0, 1, 2]) await fill(index);
    const overtaken = await open(0);
    const next = await open(0, 2);
    const documents = [first('c0', 25, {})];
    await next.write({ documents, from: at(20), to: at(25) });
    await next.close();
    await rejectsWith('FENCED', overtaken.mergeShares?.() ?? Promise.resolve());
    await overtaken.close();
    expect(existsSync(fileOf(1))).to.equal(true);
  });
});
