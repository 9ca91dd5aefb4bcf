import { chmodSync, chownSync } from 'node:fs';
import { expect } from 'chai';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { logFile } from '../../../stores/sqlite/event-log/schema.ts';
import { event, readAllOf } from '../../contracts/event-store-subject.ts';
import { plainCodec } from '../../support/plain-codec.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { Child } from './event-log-family.ts';
import { leaveOut } from '../../support/left-out.ts';

/** Processes that append concurrently, and the number of their appends. */
const WRITERS = 4;
const APPENDS_PER_WRITER = 1_000;
/** Maximum duration of an append while many compete for the lock. A starved writer takes far longer. Milliseconds. */
const MAX_APPEND_MS = 2_000;

describe('the embedded event log, shared by processes', function () {
  this.timeout(120_000);
  const directory = useTemporaryDirectory();
  const children: Child[] = [];
  const child = async (): Promise<Child> => {
    const started = await Child.over(directory());
    children.push(started);
    return started;
  };
  afterEach(async () => {
    await Promise.all(children.splice(0).map((one) => one.close()));
  });

  it('gives every writer a turn, and every event one position', async () => {
    const writers = await Promise.all(Array.from({ length: WRITERS }, () => child()));
    const begun = performance.now();
    for (const writer of writers) {
      writer.order({ kind: 'hammer', shared: 'shared', count: APPENDS_PER_WRITER });
    }
    const results = await Promise.all(writers.map((writer) => writer.until('hammered')));
    const slowest = results.map((result) => Math.round(result.slowest));
    process.stdout.write(`        slowest append of each process: ${slowest.join(', ')} ms\n`);
    // A writer without a turn would wait for the others to end. On a busy machine, each append takes longer.
    const limit = Math.max(MAX_APPEND_MS, (performance.now() - begun) / 2);
    for (const milliseconds of slowest) expect(milliseconds).to.be.below(limit);

    const store = await openSqliteEventStore({
      directory: directory(),
      codec: plainCodec,
      telemetry: silent,
    });
    try {
      const all = await readAllOf(store, '', '', 1000);
      expect(all).to.have.lengthOf(WRITERS * APPENDS_PER_WRITER);
      expect(all.map(({ position }) => Number(position))).to.deep.equal(all.map((_, i) => i + 1));
      const streams = new Map<string, number>();
      for (const { stream, revision } of all) {
        expect(revision).to.equal((streams.get(stream) ?? -1) + 1);
        streams.set(stream, revision);
      }
      expect(streams.get('shared')).to.equal((WRITERS * APPENDS_PER_WRITER) / 2 - 1);
      expect(streams.size).to.equal(1 + WRITERS);
    } finally {
      await store.close();
    }
  });

  it('is followed by another process at once', async () => {
    const follower = await child();
    follower.order({ kind: 'follow' });
    await follower.until('following');
    const store = await openSqliteEventStore({
      directory: directory(),
      codec: plainCodec,
      telemetry: silent,
    });
    const delays: number[] = [];
    try {
      for (let i = 0; i < 200; i += 1) {
        const one = event(i);
        await store.append(`s-${i}`, [one], 'none');
        const durable = process.hrtime.bigint();
        const came = await follower.messages.wait(
          (message) => message.kind === 'came' && message.id === one.id,
        );
        if (came.kind === 'came') delays.push(Number(BigInt(came.at) - durable) / 1e6);
      }
    } finally {
      await store.close();
    }
    delays.sort((a, b) => a - b);
    const [median = NaN, late = NaN] = [delays[100], delays[198]];
    process.stdout.write(
      `        median ${median.toFixed(2)} ms, 99 % within ${late.toFixed(2)} ms\n`,
    );
    // Without notices, the follower would look every 250 ms. The median, because a busy machine may delay any single
    // one.
    expect(median).to.be.below(50);
  });

  it('reports that it is read-only if it cannot be written, and names the file', async function () {
    const uid = process.getuid?.();
    if (uid === undefined) leaveOut(this, 'a read-only log: this system has no users to change to');
    await openSqliteEventStore({
      directory: directory(),
      codec: plainCodec,
      telemetry: silent,
    }).then((store) => store.close());
    chmodSync(logFile(directory()), 0o444);
    chmodSync(directory(), 0o555);
    // Nothing is read-only for root, so the process runs as another user.
    const reader = await Child.start(uid === 0 ? { uid: 65_534, gid: 65_534 } : {});
    try {
      reader.order({ kind: 'open', directory: directory() });
      const refused = await reader.until('refused');
      expect(refused.code).to.equal('UNAVAILABLE');
      expect(refused.message).to.include(logFile(directory()));
      expect(refused.message).to.match(/read-only|cannot be opened/);
    } finally {
      await reader.close();
      chmodSync(directory(), 0o755);
      chownSync(directory(), uid, process.getgid?.() ?? uid);
    }
  });
});
