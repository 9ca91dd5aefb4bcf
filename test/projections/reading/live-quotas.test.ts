import { expect } from 'chai';
import type { EventStore } from '../../../domain/event-store.ts';
import { createEventCodec } from '../../../domain/events/codec.ts';
import { silent } from '../../../observability/telemetry.ts';
import { LiveQuotas } from '../../../projections/reading/live-quotas.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { deferred, eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('the quotas of namespaces', () => {
  const directory = useTemporaryDirectory();
  let store: EventStore;
  let stop: AbortController;
  let following: Promise<void>;
  /** Resolves when a stream is read. */
  let reads: Map<string, ReturnType<typeof deferred<void>>>;
  let quotas: LiveQuotas;

  beforeEach(async () => {
    const options = { directory: directory(), codec: createEventCodec(), telemetry: silent };
    store = await openSqliteEventStore(options);
    reads = new Map(['default', 'north'].map((name) => [`namespace-${name}`, deferred<void>()]));
    const { readStream } = store;
    store.readStream = (stream, ...rest) => {
      reads.get(stream)?.resolve();
      return readStream.call(store, stream, ...rest);
    };
    stop = new AbortController();
    quotas = new LiveQuotas(store, { north: { events: 9 } }, silent.failures);
    const started = deferred();
    following = quotas.follow(stop.signal, () => started.resolve());
    await started.promise;
  });
  afterEach(async () => {
    stop.abort();
    await following;
    await store.close();
  });

  it('are read for the default namespace when the service starts, before a run needs them', () =>
    reads.get('namespace-default')?.promise);

  it('are read when they are needed but not known yet', async () => {
    expect(quotas.peek('north')).to.equal(undefined);
    await reads.get('namespace-north')?.promise;
    await eventually(() => quotas.peek('north') !== undefined);
    expect(quotas.peek('north')).to.include({ events: 9 });
  });
});
