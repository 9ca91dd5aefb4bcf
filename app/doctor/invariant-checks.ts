import { fromIso, type Instant } from '../../domain/clock.ts';
import { EventStoreError, type EventCodec, type RawEvent } from '../../domain/event-store.ts';
import type { DataOf, KeyEvent } from '../../domain/events/catalogue.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import { load } from '../../domain/handle.ts';
import { judge } from '../../domain/keys/key-judgement.ts';
import type { KeyState } from '../../domain/keys/key.ts';
import type { LogTransfer } from '../../domain/log-transfer.ts';
import { nextFireOf, nextRunOf, type Rhythm } from '../../domain/tasks/rhythm.ts';
import { runFold } from '../../domain/runs/run.ts';
import { placesOf } from '../../domain/runs/run-request.ts';
import { ScheduleError } from '../../domain/schedule/schedule.ts';
import { streams } from '../../domain/streams.ts';
import { compileRule } from '../../scheduler/fires/due-index.ts';
import type { ArchiveProgress } from '../archive/progress.ts';
import { currentSchedules } from '../cli/store/current-schedules.ts';
import type { Stores } from '../stores.ts';
import { fault, ok, warn, type Finding } from './finding.ts';

/** What is younger than this may be under way. Milliseconds. */
const SETTLED = 60_000;

/** Places of keys that are looked at, the oldest first. */
const MOST_PLACES = 1_000;

/** Names that are told. */
const NAMED = 3;

const MENDS = 'the scheduler mends it within minutes where one runs; see its log otherwise';

/** Looks whether each active task has a fire ahead, or has had its last. */
export async function checkTasks(
  { store, readModel }: Stores,
  now: Instant,
  held: boolean,
  signal: AbortSignal,
): Promise<Finding> {
  const check = 'tasks';
  const [without, overdue]: [string[], string[]] = [[], []];
  let active = 0;
  for await (const { taskId, rhythm } of currentSchedules(store, readModel, signal)) {
    if (rhythm.status !== 'active' || rhythm.definition.schedule_kind === 'event') continue;
    active += 1;
    const runAt = nextRunOf(rhythm);
    if (nextFireOf(rhythm) === null && owesAFire(rhythm, now)) without.push(taskId);
    else if (runAt !== null && fromIso(runAt) < now - SETTLED) overdue.push(taskId);
  }
  if (without.length > 0) {
    return fault(
      check,
      `active, with a fire by their rule but none ahead: ${some(without)}`,
      MENDS,
    );
  }
  if (overdue.length > 0 && !held) {
    const how = 'start a process with the role scheduler; svc owed says what is owed';
    return warn(check, `due for over a minute and not decided: ${some(overdue)}`, how);
  }
  return ok(check, `${active} active ones by time, each with a fire ahead or at its end`);
}

function owesAFire(rhythm: Rhythm, now: Instant): boolean {
  const { max_runs } = rhythm.definition;
  if (max_runs !== null && (rhythm.fires?.fire_count ?? 0) >= max_runs) return false;
  try {
    return compileRule(rhythm).next(now) !== null;
  } catch (error) {
    if (error instanceof ScheduleError) return false;
    throw error;
  }
}

/**
 * Reads the whole log once, and looks whether each fire has its run and each place at a key a run that wants it.
 * Nothing is changed.
 */
export async function checkLog(
  log: LogTransfer,
  { store }: Stores,
  now: Instant,
  lease: number,
  progress: ArchiveProgress,
): Promise<readonly Finding[]> {
  const fires = new Map<string, string>();
  const keys = new Map<string, KeyState>();
  let events = 0;
  const damaged: string[] = [];
  const codec = createEventCodec();
  for await (const part of log.contents()) {
    progress.signal.throwIfAborted();
    for (const event of part.events) {
      events += 1;
      if (!follow(event, codec, fires, keys)) damaged.push(`${event.revision} of ${event.stream}`);
    }
    // A run of which nothing is left was there.
    for (const { stream } of part.truncations) fires.delete(stream);
    progress.move(part.share, events);
  }
  const orphans = [...fires].flatMap(([stream, at]) =>
    fromIso(at) < now - SETTLED ? [stream.slice('run-'.length)] : [],
  );
  const findings = [
    damaged.length === 0
      ? ok('events', `${events.toLocaleString('en')} in the log`)
      : fault(
          'events',
          `damaged: revision ${some(damaged)}`,
          'see by svc streams show what they are about; or restore a backup',
        ),
    orphans.length === 0
      ? ok('fires', 'each has its run')
      : fault('fires', `without a run: ${some(orphans)}`, MENDS),
  ];
  const dead = await deadPlaces(store, keys, now, lease);
  findings.push(
    dead.length === 0
      ? ok('keys', 'each place belongs to a run that goes on')
      : fault('keys', `held by runs that are over: ${some(dead)}`, MENDS),
  );
  return findings;
}

/** @returns false for an event that is damaged */
function follow(
  event: RawEvent,
  codec: EventCodec,
  fires: Map<string, string>,
  keys: Map<string, KeyState>,
): boolean {
  const { stream, type, createdAt } = event;
  const data = dataOf(event, codec);
  if (data === null) return false;
  if (type === 'Fired') {
    const { run_id } = data as DataOf<'Fired'>;
    fires.set(streams.run(run_id), createdAt);
  } else if (stream.startsWith('run-')) {
    fires.delete(stream);
  } else if (stream.startsWith('key-')) {
    const { run_id: _about, ...state } = data as KeyEvent['data'];
    if (state.holders.length + state.waiters.length === 0) keys.delete(stream);
    else keys.set(stream, state);
  }
  return true;
}

/** An event's data; null where they, or its metadata, do not fit their schema. */
function dataOf(event: RawEvent, codec: EventCodec): unknown {
  try {
    const { data, fault } = codec.decode(event);
    return fault === undefined ? data : null;
  } catch (error) {
    // Of a newer release: what it says can't be checked by this one.
    const isNewer = error instanceof EventStoreError && error.code === 'NEWER_SCHEMA';
    if (isNewer) return JSON.parse(event.data) as unknown;
    throw error;
  }
}

async function deadPlaces(
  store: Stores['store'],
  keys: ReadonlyMap<string, KeyState>,
  now: Instant,
  lease: number,
): Promise<readonly string[]> {
  const dead: string[] = [];
  let looked = 0;
  for (const state of keys.values()) {
    for (const place of placesOf(state)) {
      if (now - fromIso(place.since) < SETTLED || (looked += 1) > MOST_PLACES) continue;
      const stream = streams.run(place.run_id);
      const { state: run } = await load(store, stream, runFold);
      const [last] = await store.readStream(stream, { direction: 'backwards', limit: 1 });
      const seen = { run, lastAt: last?.metadata.occurredAt ?? null };
      if (judge(place, state.kind, seen, now, lease) === 'ended') {
        dead.push(`${place.run_id} (${state.kind} ${state.key})`);
      }
    }
  }
  return dead;
}

function some(names: readonly string[]): string {
  const first = names.slice(0, NAMED).join(', ');
  return names.length > NAMED ? `${first} and ${names.length - NAMED} more` : first;
}
