import { fromIso, type Instant } from '../../domain/clock.ts';
import { EventStoreError, type EventCodec, type RawEvent } from '../../domain/event-store.ts';
import type { DataOf, KeyEvent } from '../../domain/events/catalogue.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import { load } from '../../domain/handle.ts';
import { staleHolderVerdict } from '../../domain/keys/stale-holders.ts';
import type { KeyState } from '../../domain/keys/key.ts';
import type { LogTransfer } from '../../domain/log-transfer.ts';
import { nextFireOf, nextRunOf, type ScheduleState } from '../../domain/tasks/schedule-state.ts';
import { runFold } from '../../domain/runs/run.ts';
import { placesOf } from '../../domain/runs/run-request.ts';
import { ScheduleError } from '../../domain/schedule/schedule.ts';
import { streams } from '../../domain/streams.ts';
import { compileRule } from '../../domain/tasks/task-schedule.ts';
import type { ArchiveProgress } from '../archive/progress.ts';
import { currentSchedules } from '../cli/store/current-schedules.ts';
import type { Stores } from '../stores.ts';
import { fault, ok, warn, type Finding } from './finding.ts';

/** Younger facts can still be in progress. Milliseconds. */
const SETTLED_AFTER = 60_000;

/** Most holders and waiters of keys that are checked. */
const MAX_CHECKED_PLACES = 1_000;

/** Most names in a message. */
const MAX_NAMED = 3;

const REPAIRS = 'a running scheduler repairs this within minutes; otherwise see its log';

/** Checks that each active task has a next fire or has had its last. */
export async function checkTasks(
  { store, readModel }: Stores,
  now: Instant,
  isHeld: boolean,
  signal: AbortSignal,
): Promise<Finding> {
  const check = 'tasks';
  const [withoutFire, overdue]: [string[], string[]] = [[], []];
  let active = 0;
  for await (const { taskId, state: schedule } of currentSchedules(store, readModel, signal)) {
    if (schedule.status !== 'active' || schedule.definition.schedule_kind === 'event') continue;
    active += 1;
    const runAt = nextRunOf(schedule);
    if (nextFireOf(schedule) === null && hasFireAhead(schedule, now)) withoutFire.push(taskId);
    else if (runAt !== null && fromIso(runAt) < now - SETTLED_AFTER) overdue.push(taskId);
  }
  if (withoutFire.length > 0) {
    const what = `active tasks whose rule has a next fire, but whose state has none`;
    return fault(check, `${what}: ${shorten(withoutFire)}`, REPAIRS);
  }
  if (overdue.length > 0 && !isHeld) {
    const advice = 'start a process with the role scheduler; svc owed lists the backlog';
    return warn(check, `due and undecided for over a minute: ${shorten(overdue)}`, advice);
  }
  return ok(check, `${active} active time-based tasks, each with a next fire or at its end`);
}

/** Whether a rule has a next fire within `max_runs`. */
function hasFireAhead(schedule: ScheduleState, now: Instant): boolean {
  const { max_runs } = schedule.definition;
  if (max_runs !== null && (schedule.fires?.fire_count ?? 0) >= max_runs) return false;
  try {
    return compileRule(schedule.definition, schedule.anchor).next(now) !== null;
  } catch (error) {
    if (error instanceof ScheduleError) return false;
    throw error;
  }
}

/**
 * Reads the whole log once and checks that each fire has its run, that each run has the payload of its event, and that
 * holders and waiters of keys are unfinished runs.
 */
export async function checkLog(
  log: LogTransfer,
  { store }: Stores,
  now: Instant,
  lease: number,
  progress: ArchiveProgress,
): Promise<readonly Finding[]> {
  const found: FoundInLog = {
    fires: new Map(),
    keys: new Map(),
    payloads: new Set(),
    withoutPayload: new Map(),
  };
  const { fires, keys, withoutPayload } = found;
  let events = 0;
  const damaged: string[] = [];
  const codec = createEventCodec();
  for await (const part of log.contents()) {
    progress.signal.throwIfAborted();
    for (const event of part.events) {
      events += 1;
      if (!record(event, codec, found)) damaged.push(`${event.revision} of ${event.stream}`);
    }
    // The run of a truncated stream existed.
    for (const { stream } of part.truncations) {
      fires.delete(stream);
      withoutPayload.delete(stream);
    }
    progress.move(part.share, events);
  }
  const orphans = [...fires].flatMap(([stream, at]) =>
    fromIso(at) < now - SETTLED_AFTER ? [stream.slice('run-'.length)] : [],
  );
  const findings = [
    damaged.length === 0
      ? ok('events', `${events.toLocaleString('en')} in the log`)
      : fault(
          'events',
          `damaged: revision ${shorten(damaged)}`,
          'inspect them with svc streams show, or restore a backup',
        ),
    orphans.length === 0
      ? ok('fires', 'each fire has its run')
      : fault('fires', `without a run: ${shorten(orphans)}`, REPAIRS),
  ];
  const lost = [...new Set(withoutPayload.values())];
  findings.push(
    lost.length === 0
      ? ok('payloads', 'each run has the payload of its event')
      : fault(
          'payloads',
          `events whose payload is missing: ${shorten(lost)}`,
          'their runs fail; restore a backup, or publish the events again',
        ),
  );
  const dead = await finishedPlaces(store, keys, now, lease);
  findings.push(
    dead.length === 0
      ? ok('keys', 'each key is held by an unfinished run')
      : fault('keys', `held by finished runs: ${shorten(dead)}`, REPAIRS),
  );
  return findings;
}

/** The findings in the part of the log that was read. */
interface FoundInLog {
  /** When each fire without a run was decided, by the run's stream. */
  readonly fires: Map<string, string>;
  readonly keys: Map<string, KeyState>;
  /** Events whose payload is stored. */
  readonly payloads: Set<string>;
  /** Events whose payload is not stored, by the stream of the run that needs it. */
  readonly withoutPayload: Map<string, string>;
}

/** Records a fire, a run, a payload or a key's state. Returns false for a damaged event. */
function record(
  event: RawEvent,
  codec: EventCodec,
  { fires, keys, payloads, withoutPayload }: FoundInLog,
): boolean {
  const { stream, type, createdAt } = event;
  const data = dataOf(event, codec);
  if (data === null) return false;
  if (type === 'Fired') {
    const { run_id } = data as DataOf<'Fired'>;
    fires.set(streams.run(run_id), createdAt);
  } else if (type === 'PayloadStored') {
    payloads.add((data as DataOf<'PayloadStored'>).event_id);
  } else if (stream.startsWith('run-')) {
    fires.delete(stream);
    if (type !== 'RunRequested') return true;
    const { event: cause } = data as DataOf<'RunRequested'>;
    // The payload is stored before the run is requested.
    if (cause === null || cause.payload !== undefined || payloads.has(cause.id)) return true;
    withoutPayload.set(stream, cause.id);
  } else if (stream.startsWith('key-')) {
    const { run_id: _about, ...state } = data as KeyEvent['data'];
    if (state.holders.length + state.waiters.length === 0) keys.delete(stream);
    else keys.set(stream, state);
  }
  return true;
}

/** An event's data; null if they or the metadata do not match their schema. */
function dataOf(event: RawEvent, codec: EventCodec): unknown {
  try {
    const { data, fault } = codec.decode(event);
    return fault === undefined ? data : null;
  } catch (error) {
    // This release cannot check events of a newer release.
    const isNewer = error instanceof EventStoreError && error.code === 'NEWER_SCHEMA';
    if (isNewer) return JSON.parse(event.data) as unknown;
    throw error;
  }
}

async function finishedPlaces(
  store: Stores['store'],
  keys: ReadonlyMap<string, KeyState>,
  now: Instant,
  lease: number,
): Promise<readonly string[]> {
  const dead: string[] = [];
  let checked = 0;
  for (const state of keys.values()) {
    for (const place of placesOf(state)) {
      if (now - fromIso(place.since) < SETTLED_AFTER || (checked += 1) > MAX_CHECKED_PLACES)
        continue;
      const stream = streams.run(place.run_id);
      const { state: run } = await load(store, stream, runFold);
      const [last] = await store.readStream(stream, { direction: 'backwards', limit: 1 });
      const seen = { run, lastAt: last?.metadata.occurredAt ?? null };
      if (staleHolderVerdict(place, state.kind, seen, now, lease) === 'ended') {
        dead.push(`${place.run_id} (${state.kind} ${state.key})`);
      }
    }
  }
  return dead;
}

/** Names for a message; of many the first few and a count. */
function shorten(names: readonly string[]): string {
  const first = names.slice(0, MAX_NAMED).join(', ');
  return names.length > MAX_NAMED ? `${first} and ${names.length - MAX_NAMED} more` : first;
}
