import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { NewEvent } from '../../domain/event-store.ts';
import { silent } from '../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { logFile, openLogForWriting } from '../../stores/sqlite/event-log/schema.ts';
import { plainCodec } from '../../test/support/plain-codec.ts';
import { withBenchFolder } from '../bench-folder.ts';
import { secondsOf } from '../bench-service.ts';
import { median } from '../statistics.ts';
import { atLeast, type Benchmark } from '../benchmark.ts';

const CALLERS = 1_000;
const APPENDS = 30_000;
/** Each round has a turn of both sides, because the machine's speed changes by the second. */
const ROUNDS = 5;

/**
 * Durable appends of one small event, each to its own stream. 1,000 callers of the store, each waiting for its response,
 * are compared with the bare driver, the same tables and as many appends a commit. Median of the rounds.
 */
export const append: Benchmark = {
  targets: [atLeast('ratio', 0.5, 'beside the bare driver')],
  count: () => APPENDS,
  measure: () =>
    withBenchFolder('append', async (directory) => {
      const rounds: { readonly ours: number; readonly raw: number; readonly batch: number }[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        const { ours, batch } = await measureStore(join(directory, `ours-${round}`));
        const raw = await measureDriver(join(directory, `raw-${round}`), batch);
        rounds.push({ ours, raw, batch });
      }
      return {
        'appends/s': Math.round(median(rounds.map(({ ours }) => ours))),
        'raw appends/s': Math.round(median(rounds.map(({ raw }) => raw))),
        ratio: Number(median(rounds.map(({ ours, raw }) => ours / raw)).toFixed(2)),
        'events a commit': median(rounds.map(({ batch }) => batch)),
      };
    }),
};

async function measureStore(
  directory: string,
): Promise<{ readonly ours: number; readonly batch: number }> {
  let commits = 0;
  const telemetry = {
    ...silent,
    observe: (name: string): void => {
      if (name === 'event_log_commit_seconds') commits += 1;
    },
  };
  const store = await openSqliteEventStore({ directory, codec: plainCodec, telemetry });
  const appends = Array.from({ length: APPENDS }, makeAppend);
  let next = 0;
  const caller = async (): Promise<void> => {
    for (let each = appends[next++]; each !== undefined; each = appends[next++]) {
      await store.append(each.stream, [each.event], 'none');
    }
  };
  const seconds = await secondsOf(() => Promise.all(Array.from({ length: CALLERS }, caller)));
  await store.close();
  return { ours: APPENDS / seconds, batch: Math.round(APPENDS / commits) };
}

async function measureDriver(directory: string, batch: number): Promise<number> {
  const database = openLogForWriting(logFile(directory), true, undefined);
  database.exec("PRAGMA wal_autocheckpoint = 8000; INSERT INTO types (name) VALUES ('x')");
  const addStream = database.prepare('INSERT INTO streams (name) VALUES (?)');
  const addEvent = database.prepare(
    'INSERT INTO events (position, stream, revision, id, type, created_at, data, metadata) VALUES (?, ?, 0, ?, 1, ?, ?, ?)',
  );
  const setHead = database.prepare('UPDATE log SET head = ?');
  const rows = Array.from({ length: APPENDS }, () => {
    const { stream, event } = makeAppend();
    return { stream, ...plainCodec.encode(event) };
  });
  const seconds = await secondsOf(async () => {
    for (let first = 0; first < rows.length; first += batch) {
      database.exec('BEGIN IMMEDIATE');
      let position = first;
      for (const { stream, id, data, metadata } of rows.slice(first, first + batch)) {
        const { lastInsertRowid } = addStream.run(stream);
        addEvent.run((position += 1), lastInsertRowid, id, 1_700_000_000_000, data, metadata);
      }
      setHead.run(position);
      database.exec('COMMIT');
    }
  });
  database.close();
  return APPENDS / seconds;
}

function makeAppend(): { readonly stream: string; readonly event: NewEvent } {
  const id = randomUUID();
  const at = '2026-01-01T00:00:00.000Z';
  const event: NewEvent = {
    id,
    type: 'EventPublished',
    data: {
      event_id: id,
      topic: 'bench',
      payload: { number: 1 },
      source_agent_id: 'agent',
      published_at: at,
      triggered_tasks: [],
    },
    metadata: {
      commandId: id,
      $correlationId: id,
      actor: 'service',
      source: 'bench',
      schemaVersion: '1',
      occurredAt: at,
    },
  };
  return { stream: `run-${randomUUID()}`, event };
}
