import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { artifactOf } from '../../../domain/artifacts/artifact.ts';
import { ArtifactError } from '../../../domain/artifacts/artifact-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import { Retention } from '../../../scheduler/retention/retention.ts';
import { openSqliteCoordination } from '../../../stores/sqlite/coordination/coordination.ts';
import { ProjectorHarness } from '../../projections/projector-harness.ts';
import { request, success } from '../../projections/recorded.ts';
import { MemoryArtifacts } from '../../support/memory-artifacts.ts';
import { QuickClock } from '../../support/quick-clock.ts';
import { makeTemporaryDirectory } from '../../support/temporary-directory.ts';

const DAY = 86_400_000;
const NOW = Date.parse('2026-03-06T12:00:00.000Z');

/** A clock that a test sets, whose sleeps return at once. */
class SetClock extends QuickClock {
  instant = NOW;
  override now(): number {
    return this.instant;
  }
}

describe('the retention of artifacts', () => {
  const [old, recent, unfinished, foreign] = [1, 2, 3, 4].map(() => randomUUID()) as [
    string,
    string,
    string,
    string,
  ];
  const content = new TextEncoder().encode('"large"');
  const { artifact } = artifactOf(content);
  let harness: ProjectorHarness;
  let coordination: Coordination;
  let artifacts: MemoryArtifacts;
  let clock: SetClock;
  let retention: Retention;
  const closing: (() => Promise<void>)[] = [];

  beforeEach(async () => {
    harness = await ProjectorHarness.open();
    const directory = await makeTemporaryDirectory();
    coordination = await openSqliteCoordination({ directory: directory.path, telemetry: silent });
    closing.push(
      () => harness.close(),
      () => coordination.close(),
      () => directory.remove(),
    );
    artifacts = new MemoryArtifacts();
    artifacts.writtenAt = NOW - 5 * DAY;
    clock = new SetClock();
    retention = another();
    const { log } = harness;
    log.add(`run-${unfinished}`, 'RunRequested', request());
    ended(old);
    log.pass(5 * DAY);
    ended(recent);
    await harness.append();
    for (const run of [old, recent, unfinished, foreign])
      await artifacts.put(run, artifact, content);
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  const another = (runs: number | null = 2 * DAY): Retention => {
    const off = { deliveries: null, sessions: null, refusals: null, requests: null };
    const { store } = harness;
    return new Retention({
      store,
      coordination,
      telemetry: silent,
      clock,
      artifacts,
      leadership: { leads: true, fence: 1 },
      name: 'test',
      limits: { ...off, runs },
    });
  };
  const pass = (by = retention): Promise<void> => by.pass(new AbortController().signal);
  const faultOf = (work: Promise<void>): Promise<unknown> =>
    work.then(
      () => null,
      (error: unknown) => error,
    );

  function ended(run: string): void {
    const { log } = harness;
    const { createdAt: started_at } = log.add(`run-${run}`, 'RunRequested', request());
    log.add(`run-${run}`, 'RunSucceeded', success({ task_id: 'task-1', started_at }));
  }

  const runs = (): readonly string[] =>
    [...artifacts.contents.keys()].map((key) => key.slice(0, 36));

  it('removes artifacts of removed runs, and no others', async () => {
    await pass();
    expect(runs()).to.have.members([recent, unfinished, foreign]);
  });

  it('removes an artifact that no event refers to with its run', async () => {
    await artifacts.put(old, artifactOf(new TextEncoder().encode('"orphan"')).artifact, content);
    await pass();
    expect(runs()).to.not.include(old);
  });

  it('keeps all artifacts while runs are kept permanently', async () => {
    await pass(another(null));
    expect(runs()).to.have.lengthOf(4);
  });

  it('continues where it was killed, even in another process', async () => {
    artifacts.onRemove = () => {
      throw new ArtifactError('UNAVAILABLE', 'killed', 'start again');
    };
    expect(await faultOf(pass())).to.be.an.instanceOf(ArtifactError);
    expect(runs()).to.include(old);
    artifacts.onRemove = () => {};
    await pass(another());
    expect(runs()).to.not.include(old);
  });

  it('removes runs even if the store is unavailable, and their artifacts in a later pass', async () => {
    artifacts.failing = 1;
    expect(await faultOf(pass())).to.be.an.instanceOf(ArtifactError);
    const [last] = await harness.store.readStream(`run-${old}`, {
      direction: 'backwards',
      limit: 1,
    });
    expect(last?.type).to.equal('RunRemoved');
    await pass();
    expect(runs()).to.not.include(old);
  });

  it('searches once a day for artifacts written late by a process that was paused for long', async () => {
    await pass();
    await artifacts.put(old, artifact, content);
    clock.instant += DAY / 2;
    await pass();
    expect(runs()).to.include(old);
    clock.instant += DAY / 2;
    await pass();
    expect(runs()).to.not.include(old);
  });

  it('skips artifacts that are too new to belong to a removed run', async () => {
    await pass();
    await artifacts.put(old, artifact, content);
    artifacts.writtenAt = NOW + DAY;
    clock.instant += DAY;
    await pass();
    expect(runs()).to.include(old);
  });
});
