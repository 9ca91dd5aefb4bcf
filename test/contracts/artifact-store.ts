import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { artifactOf } from '../../domain/artifacts/artifact.ts';
import {
  type ArtifactStore,
  type OpenArtifact,
  type StoredArtifact,
} from '../../domain/artifacts/artifact-store.ts';

/** What an adapter's test provides to the contract suite: one store for one test. */
export interface ArtifactStoreHarness {
  readonly store: ArtifactStore;
  /** Another store over the same place, as another process would open it. The harness closes it. */
  another(): Promise<ArtifactStore>;
  close(): Promise<void>;
}

/** A content and the name of its artifact. */
export function contentOf(text: string): { readonly name: string; readonly content: Uint8Array } {
  const content = new TextEncoder().encode(JSON.stringify(text));
  return { name: artifactOf(content).artifact, content };
}

/** The content of an artifact; null if there is none. */
export async function textIn(opened: OpenArtifact | null): Promise<unknown> {
  if (opened === null) return null;
  const chunks: Uint8Array[] = [];
  for await (const chunk of opened.chunks) chunks.push(chunk);
  const whole = Buffer.concat(chunks);
  expect(whole.byteLength).to.equal(opened.sizeBytes);
  return JSON.parse(whole.toString('utf8'));
}

/** The artifacts of a run that a store lists. */
export async function listed(store: ArtifactStore, runId: string): Promise<StoredArtifact[]> {
  const all: StoredArtifact[] = [];
  for await (const page of store.list()) all.push(...page.filter((one) => one.runId === runId));
  return all.sort((one, other) => (one.artifact < other.artifact ? -1 : 1));
}

/** The contract of every artifact store. @param name for the titles: "the store of artifacts in files" */
export function describeArtifactStoreContract(
  name: string,
  open: () => Promise<ArtifactStoreHarness>,
): void {
  describe(name, () => {
    let harness: ArtifactStoreHarness;
    let store: ArtifactStore;
    const run = randomUUID();

    beforeEach(async () => {
      harness = await open();
      ({ store } = harness);
    });

    afterEach(async () => {
      await harness.close();
    });

    it('returns what was put, even to another process', async () => {
      const { name: artifact, content } = contentOf('ü'.repeat(300_000));
      await store.put(run, artifact, content);
      const other = await harness.another();
      expect(await textIn(await other.open(run, artifact))).to.equal('ü'.repeat(300_000));
    });

    it('has nothing under an unknown name', async () => {
      expect(await store.open(run, contentOf('none').name)).to.equal(null);
    });

    it('keeps the artifacts of runs apart', async () => {
      const { name: artifact, content } = contentOf('mine');
      await store.put(run, artifact, content);
      expect(await store.open(randomUUID(), artifact)).to.equal(null);
    });

    it('accepts the same artifact again, and from several writers at once', async () => {
      const { name: artifact, content } = contentOf('x'.repeat(500_000));
      const other = await harness.another();
      const writers = [store, other, store, other, store, other];
      await Promise.all(writers.map((each) => each.put(run, artifact, content)));
      await store.put(run, artifact, content);
      expect(await textIn(await store.open(run, artifact))).to.equal('x'.repeat(500_000));
      expect(await listed(store, run)).to.have.lengthOf(1);
    });

    it('copies an artifact to another run, which keeps it when the first loses it', async () => {
      const { name: artifact, content } = contentOf('shared');
      const retry = randomUUID();
      await store.put(run, artifact, content);
      expect(await store.copy(artifact, run, retry)).to.equal(true);
      expect(await store.copy(artifact, run, retry)).to.equal(true);
      await store.remove(run, artifact);
      expect(await textIn(await store.open(retry, artifact))).to.equal('shared');
      await store.remove(retry, artifact);
    });

    it('reports that an artifact to copy does not exist', async () => {
      expect(await store.copy(contentOf('none').name, run, randomUUID())).to.equal(false);
    });

    it('removes an artifact, even if it is already removed', async () => {
      const { name: artifact, content } = contentOf('short-lived');
      const { name: left, content: kept } = contentOf('left');
      await store.put(run, artifact, content);
      await store.put(run, left, kept);
      await store.remove(run, artifact);
      await store.remove(run, artifact);
      expect(await store.open(run, artifact)).to.equal(null);
      expect(await textIn(await store.open(run, left))).to.equal('left');
      await store.remove(run, left);
    });

    it('accepts an artifact of a run whose last one is removed at the same time', async () => {
      const { name: artifact, content } = contentOf('again');
      for (let turn = 0; turn < 20; turn += 1) {
        await store.put(run, artifact, content);
        const other = contentOf(`other ${String(turn)}`);
        await Promise.all([
          store.remove(run, artifact),
          store.put(run, other.name, other.content).then(() => store.remove(run, other.name)),
        ]);
      }
      await store.put(run, artifact, content);
      expect(await textIn(await store.open(run, artifact))).to.equal('again');
    });

    it('lists all artifacts with the times at which they were written', async () => {
      const begun = Date.now();
      const lister = randomUUID();
      const made = Array.from({ length: 8 }, (_, index) => contentOf(`number ${String(index)}`));
      for (const { name: artifact, content } of made) await store.put(lister, artifact, content);
      const found = await listed(store, lister);
      expect(found.map(({ artifact }) => artifact)).to.deep.equal(
        made.map(({ name: artifact }) => artifact).sort(),
      );
      for (const { modifiedAt } of found) {
        expect(modifiedAt).to.be.within(begun - 60_000, Date.now() + 60_000);
      }
      for (const { artifact } of found) await store.remove(lister, artifact);
    });

    it('lists nothing while it is empty', async () => {
      expect(await listed(store, randomUUID())).to.deep.equal([]);
    });

    it('allows a reader to close an artifact early', async () => {
      const { name: artifact, content } = contentOf('y'.repeat(2_000_000));
      await store.put(run, artifact, content);
      (await store.open(run, artifact))?.close();
      expect(await textIn(await store.open(run, artifact))).to.have.lengthOf(2_000_000);
    });

    for (const bad of ['..', '../../events.sqlite', 'a/b', '%2e%2e', '', 'A'.repeat(64), 'x\0']) {
      it(`rejects the name ${JSON.stringify(bad)}, of a run and of an artifact`, async () => {
        const { name: artifact, content } = contentOf('good');
        const calls = [
          () => store.put(bad, artifact, content),
          () => store.put(run, bad, content),
          () => store.open(bad, artifact),
          () => store.open(run, bad),
          () => store.copy(bad, run, run),
          () => store.copy(artifact, run, bad),
          () => store.remove(run, bad),
          () => store.remove(bad, artifact),
        ];
        for (const call of calls) {
          const error: unknown = await call().then(
            () => null,
            (fault: unknown) => fault,
          );
          expect(error).to.be.an.instanceOf(RangeError);
        }
      });
    }

    it('can be checked repeatedly', async () => {
      await store.check();
      await store.check();
    });
  });
}
