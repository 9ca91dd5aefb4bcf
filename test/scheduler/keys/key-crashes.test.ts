import { expect } from 'chai';
import { readKey } from '../../../domain/keys/key-stream.ts';
import type { KeyName } from '../../../domain/keys/key.ts';
import { KeyWorld, OWNER, faultsOfKeys, soon } from './key-harness.ts';
import { longVersions } from '../../support/left-out.ts';

const printer: KeyName = { kind: 'concurrency', owner: OWNER, key: 'printer' };

/**
 * The appends of a worker that executes three runs with one key. The first run takes the key, and two wait. Each holds
 * it, starts, ends, and passes it on or releases it. These are eleven appends; the first four already cover most cases.
 */
const APPENDS = Array.from({ length: longVersions() ? 11 : 4 }, (_, index) => index + 1);

describe('a worker that crashes', () => {
  let world: KeyWorld;
  beforeEach(async () => {
    world = await KeyWorld.open();
  });
  afterEach(() => world.close());

  for (const when of ['before', 'after'] as const) {
    for (const append of APPENDS) {
      it(`${when} append ${String(append)} blocks no later run from the key, and leaves no two holders`, async () => {
        await world.task('a', { concurrency_key: 'printer' });
        for (const run of ['r1', 'r2', 'r3']) await world.request('a', run);
        const store = await world.connect();
        store.dieAt(append, when);
        const first = await world.process('w1', { store, hold: false });
        await soon(() => expect(store.dead).to.equal(true), 'the worker to die');
        await first.kill();
        await world.process('w2', { hold: false });
        for (const run of ['r1', 'r2', 'r3']) await world.reaches(run, 'succeeded');
        // The key of the last run is left to the audit or to the next claim.
        await world.request('a', 'r4');
        await world.reaches('r4', 'succeeded');
        await soon(async () => {
          const state = await readKey(world.store, printer);
          expect([...(state?.holders ?? []), ...(state?.waiters ?? [])]).to.deep.equal([]);
        }, 'the key to be free');
        expect(faultsOfKeys(await world.log(), 'concurrency', 1)).to.deep.equal([]);
      });
    }
  }
});
