import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { NewEvent } from '../../domain/event-store.ts';
import { silent } from '../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { logFile, openLogForWriting } from '../../stores/sqlite/event-log/schema.ts';
import { plainCodec } from '../../test/support/plain-codec.ts';
import { makeBenchFolder, removeBenchFolder } from '../bench-folder.ts';
import { median } from '../statistics.ts';

/** What was measured, and against what. */
export interface AppendBenchmark {
  readonly name: string;
  readonly ours: number;
  readonly raw: number;
  /** Ours to raw, the median over the rounds. */
  readonly ratio: number;
  readonly unit: string;
  /** Events of one commit on average, with which the raw binding was measured too. */
  readonly batch: number;
}

const CALLERS = 1_000;
/** Of one round, of which each side has some in turn: the machine's mood changes by the second. */
const APPENDS = 30_000;
const ROUNDS = 5;

/**
 * Durable appends of one small event, each to a stream of its own: what 1,000 callers get out of the
 * store, each waiting for its answer before the next, beside what the bare binding does with the same
 * tables and as many appends to a commit. The median of some rounds.
 */
export async function benchAppend(): Promise<AppendBenchmark> {
  const directory = await makeBenchFolder('append');
  try {
    const rounds: { readonly ours: number; readonly raw: number; readonly batch: number }[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const { perSecond, batch } = await measureOurs(join(directory, `ours-${round}`));
      const raw = measureRaw(join(directory, `raw-${round}`), batch);
      rounds.push({ ours: perSecond, raw, batch });
    }
    const ours = median(rounds.map((round) => round.ours));
    const raw = median(rounds.map((round) => round.raw));
    return {
      name: `append, ${CALLERS} callers, one event each`,
      ours: Math.round(ours),
      raw: Math.round(raw),
      ratio: Number(median(rounds.map((round) => round.ours / round.raw)).toFixed(2)),
      unit: 'durable appends/s',
      batch: median(rounds.map(({ batch }) => batch)),
    };
  } finally {
    await removeBenchFolder(directory);
  }
}

async function measureOurs(
  directory: string,
): Promise<{ readonly perSecond: number; readonly batch: number }> {
  let commits = 0;
  const telemetry = {
    ...silent,
    observe: (name: string): void => {
      if (name === 'event_log_commit_seconds') commits += 1;
    },
  };
  const store = await openSqliteEventStore({ directory, codec: plainCodec, telemetry });
  const appends = Array.from({ length: APPENDS }, makeAppend);
  const since = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      for (let append = appends[next++]; append !== undefined; append = appends[next++]) {
        await store.append(append.stream, [append.event], 'none');
      }
    }),
  );
  const seconds = (performance.now() - since) / 1000;
  await store.close();
  return { perSecond: APPENDS / seconds, batch: Math.round(APPENDS / commits) };
}

function measureRaw(directory: string, batch: number): number {
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
  const since = performance.now();
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
  const seconds = (performance.now() - since) / 1000;
  database.close();
  return APPENDS / seconds;
}

function makeAppend(): { readonly stream: string; readonly event: NewEvent } {
  const id = randomUUID();
  const event: NewEvent = {
    id,
    type: 'EventPublished',
    data: {
      event_id: id,
      topic: 'bench',
      payload: { number: 1 },
      source_agent_id: 'agent',
      published_at: '2026-01-01T00:00:00.000Z',
      triggered_tasks: [],
    },
    metadata: {
      commandId: id,
      $correlationId: id,
      actor: 'service',
      source: 'bench',
      schemaVersion: '1',
      occurredAt: '2026-01-01T00:00:00.000Z',
    },
  };
  return { stream: `run-${randomUUID()}`, event };
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.stdout.write(`${JSON.stringify(await benchAppend(), null, 2)}\n`);
}
