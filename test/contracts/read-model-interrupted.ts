import { expect } from 'chai';
import {
  at,
  contents,
  fill,
  rejectsWith,
  thing,
  thingsProjection,
  writerOf,
  type ReadModelHarness,
} from './read-model-things.ts';

/** The contract of engines that write documents before the checkpoint. Part of `describeReadModelContract`. */
export function describeInterruptedWriting(harness: () => ReadModelHarness): void {
  describe('a writer', () => {
    it('recovers after it stopped between its documents and its checkpoint', async () => {
      const { readModel, interruptBeforeCheckpoint } = harness();
      if (interruptBeforeCheckpoint === undefined) throw new Error('the harness cannot interrupt');
      const projection = thingsProjection();
      await fill(readModel, projection, [
        thing('a', 1, { amount: 1 }),
        thing('b', 2, { amount: 1 }),
      ]);
      const batch = {
        documents: [
          thing('a', 4, { amount: 2 }),
          thing('b', 5, null),
          thing('c', 6, { amount: 1 }),
          thing('d', 7, null),
        ],
        from: at(2),
        to: at(7),
      };
      const stopped = await writerOf(readModel, projection);
      interruptBeforeCheckpoint();
      await rejectsWith('UNAVAILABLE', stopped.write(batch));
      expect(await stopped.checkpoint()).to.equal(at(2));

      // The projector applies the same events again, which the loaded documents already include.
      const again = await writerOf(await harness().another(), projection, { fence: 2 });
      const loaded = await again.load(['a', 'b', 'c', 'd']);
      expect(loaded.get('a')?.position).to.equal(at(4));
      expect(loaded.get('b'), 'a tombstone').to.deep.equal({ position: at(5), document: null });
      await again.write({
        ...batch,
        documents: [...batch.documents, thing('b', 3, { amount: 9 }), thing('e', 7, {})],
      });
      const kept = await contents(readModel, projection);
      expect([...kept.keys()]).to.deep.equal(['a', 'c', 'e']);
      expect(kept.get('a')).to.deep.equal(thing('a', 4, { amount: 2 }));
      await Promise.all([stopped.close(), again.close()]);
    });
  });
}
