import {
  ArtifactError,
  type ArtifactStore,
  type OpenArtifact,
  type StoredArtifact,
} from '../../domain/artifacts/artifact-store.ts';

/** An artifact store in memory, for tests in virtual time. It can be made to fail. */
export class MemoryArtifacts implements ArtifactStore {
  /** By `<run>/<artifact>`. */
  readonly contents = new Map<string, Uint8Array>();
  /** How many calls fail before one works; Infinity: all. */
  failing = 0;
  /** The time at which artifacts count as written. */
  writtenAt = 0;
  /** Called before each removal; may throw. */
  onRemove: (runId: string) => void = () => {};

  /** The JSON of an artifact; undefined if there is none. */
  jsonOf(runId: string, artifact: string): unknown {
    const content = this.contents.get(`${runId}/${artifact}`);
    return content && JSON.parse(new TextDecoder().decode(content));
  }

  /** The names of a run's artifacts. */
  namesOf(runId: string): readonly string[] {
    const keys = [...this.contents.keys()].filter((key) => key.startsWith(`${runId}/`));
    return keys.map((key) => key.slice(runId.length + 1));
  }

  async put(runId: string, artifact: string, content: Uint8Array): Promise<void> {
    this.#fail();
    this.contents.set(`${runId}/${artifact}`, content);
  }

  async open(runId: string, artifact: string): Promise<OpenArtifact | null> {
    this.#fail();
    const content = this.contents.get(`${runId}/${artifact}`);
    if (content === undefined) return null;
    const chunks = (async function* () {
      yield content;
    })();
    return { sizeBytes: content.byteLength, chunks, close: () => {} };
  }

  async copy(artifact: string, from: string, to: string): Promise<boolean> {
    this.#fail();
    const content = this.contents.get(`${from}/${artifact}`);
    if (content !== undefined) this.contents.set(`${to}/${artifact}`, content);
    return content !== undefined;
  }

  async remove(runId: string, artifact: string): Promise<void> {
    this.#fail();
    this.onRemove(runId);
    this.contents.delete(`${runId}/${artifact}`);
  }

  async *list(): AsyncGenerator<readonly StoredArtifact[]> {
    this.#fail();
    for (const key of [...this.contents.keys()]) {
      const [runId = '', artifact = ''] = key.split('/');
      yield [{ runId, artifact, modifiedAt: this.writtenAt }];
    }
  }

  async check(): Promise<void> {
    this.#fail();
  }

  async close(): Promise<void> {}

  #fail(): void {
    if (this.failing <= 0) return;
    this.failing -= 1;
    throw new ArtifactError('UNAVAILABLE', 'could not reach the store of the test', 'wait');
  }
}
