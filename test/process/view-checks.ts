import { setMaxListeners } from 'node:events';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { SystemClock } from '../../app/clock.ts';
import { projections } from '../../app/projecting/projections.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import { silent, type Log, type Telemetry } from '../../observability/telemetry.ts';
import { createProjector } from '../../projections/projector/projector.ts';
import type { ViewDocument, Projection, ReadModel } from '../../projections/read-model.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { openSqliteReadModel } from '../../stores/sqlite/read-model/read-model.ts';
import { eventually } from '../support/signals.ts';
import { makeTemporaryDirectory } from '../support/temporary-directory.ts';

/**
 * Builds fresh views from the log of a stopped service, and compares every document with the stored
 * one.
 */
export async function faultsOfViews(dataDirectory: string): Promise<string[]> {
  const beside = await makeTemporaryDirectory();
  const said: string[] = [];
  const telemetry = remembering(said);
  const kept = await openSqliteReadModel({ directory: dataDirectory, telemetry });
  const fresh = await openSqliteReadModel({ directory: join(beside.path, 'views'), telemetry });
  try {
    const faults: string[] = [];
    for (const projection of projections) {
      const live = await kept.liveGeneration(projection);
      if (live === null) faults.push(`${projection.name} has no live generation`);
    }
    if (faults.length > 0) return faults;
    await bringUp(dataDirectory, fresh, 1, telemetry);
    // The views may lack the last events of a stopping service. Fences are times, so the present time is greater than
    // the fence of the service.
    await bringUp(dataDirectory, kept, Date.now(), telemetry);
    for (const projection of projections) {
      faults.push(...(await differences(projection, kept, fresh)));
    }
    return faults;
  } catch (error) {
    const lines = said.join('\n');
    throw new Error(`${String(error)}\nlog lines:\n${lines}`, { cause: error });
  } finally {
    await Promise.all([kept.close(), fresh.close()]);
    await beside.remove();
  }
}

/** Applies the log's events to views that are empty or lag slightly. */
async function bringUp(
  dataDirectory: string,
  readModel: ReadModel,
  fence: number,
  telemetry: Telemetry,
): Promise<void> {
  const store = await openSqliteEventStore({
    directory: dataDirectory,
    codec: createEventCodec(),
    telemetry,
  });
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const clock = new SystemClock();
  const projector = createProjector({
    store,
    readModel,
    projections,
    telemetry,
    clock,
    fence,
  });
  const running = projector.run(stop.signal);
  try {
    const head = await store.head();
    await eventually(
      async () => {
        for (const projection of projections) {
          const at = await readModel.checkpoint(projection);
          if (at >= head) continue;
          const status = projector.status().find(({ name }) => name === projection.name);
          throw new Error(`it is at ${at}, not ${head}: ${JSON.stringify(status)}`);
        }
      },
      { limitMs: 60_000, what: 'the views to catch up with the log' },
    );
  } finally {
    stop.abort();
    await running;
    await store.close();
  }
}

/** Telemetry whose log is recorded as lines of JSON. */
function remembering(said: string[]): Telemetry {
  const line: Log['warn'] = (message, fields) => {
    said.push(`${new Date().toISOString()} ${message} ${JSON.stringify(fields ?? {})}`);
  };
  return { ...silent, log: { debug() {}, info: line, warn: line, error: line } };
}

async function differences(
  projection: Projection,
  kept: ReadModel,
  fresh: ReadModel,
): Promise<string[]> {
  const { name } = projection;
  const faults: string[] = [];
  const positions = await Promise.all([kept.checkpoint(projection), fresh.checkpoint(projection)]);
  if (positions[0] !== positions[1]) faults.push(`${name} is at ${positions.join(', not ')}`);
  const [live, wanted] = await Promise.all([
    documentsOf(projection, kept),
    documentsOf(projection, fresh),
  ]);
  for (const key of new Set([...live.keys(), ...wanted.keys()])) {
    const [one, other] = [live.get(key), wanted.get(key)];
    if (isDeepStrictEqual(one, other)) continue;
    faults.push(`${name} ${key}: ${JSON.stringify(one)}, not ${JSON.stringify(other)}`);
  }
  return faults;
}

async function documentsOf(
  projection: Projection,
  readModel: ReadModel,
): Promise<ReadonlyMap<string, ViewDocument>> {
  const documents = new Map<string, ViewDocument>();
  for (let key: string | undefined; ;) {
    const page: readonly ViewDocument[] = await readModel.find(projection, {
      filters: [],
      sort: [],
      limit: 500,
      ...(key === undefined ? {} : { after: { values: [], key } }),
    });
    for (const document of page) documents.set(document.key, document);
    key = page.at(-1)?.key;
    if (page.length < 500) return documents;
  }
}
