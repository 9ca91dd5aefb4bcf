import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createEventCodec } from '../../../domain/events/codec.ts';
import type { DomainEvent } from '../../../domain/events/catalogue.ts';
import type { EventStore, StreamAppend } from '../../../domain/event-store.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { nameBasedId, newId } from '../../../domain/ids.ts';
import { toIso } from '../../../domain/clock.ts';
import { streams } from '../../../domain/streams.ts';
import { createTaskCommand } from '../../../domain/tasks/task-commands.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { openSqliteTransfer } from '../../../stores/sqlite/event-log/transfer.ts';
import { definition, failure, request, success } from '../../projections/recorded.ts';

/** Strings that moving must not change: unusual line ends, lone surrogates, quotes. */
export const oddText = 'line\u2028paragraph\u2029 "quoted" \\ \n tab\t 😀 \ud800 =1+1';

/** Works on the log of a folder. */
export async function onLog<T>(
  directory: string,
  work: (store: EventStore) => Promise<T>,
): Promise<T> {
  const codec = createEventCodec();
  const store = await openSqliteEventStore({ directory, codec, telemetry: silent });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Finished runs of a task, one each second, appended a few at a time. */
export async function addRuns(
  store: EventStore,
  taskId: string,
  at: number,
  count: number,
): Promise<void> {
  const runs = Array.from({ length: count }, (_, n) => appendsOfRun(taskId, at + n * 1000));
  await store.appendInOrder(runs.flat());
}

/** Runs executed concurrently within a second: all requested, then all started, then all ended. */
export async function addRunsAtOnce(
  store: EventStore,
  taskId: string,
  at: number,
  count: number,
): Promise<void> {
  const runs = Array.from({ length: count }, () => appendsOfRun(taskId, at));
  for (const step of [0, 1, 2]) {
    await store.appendInOrder(runs.flatMap((appends) => appends.slice(step, step + 1)));
  }
}

/** A run that failed and was retried, of a task that has no other events. @returns the task's id */
export async function addRetried(store: EventStore, at: number): Promise<string> {
  const taskId = newId(at);
  const leased_until = toIso(at + 60_000);
  await store.appendInOrder(
    appendsOf(newId(at), at, [
      { type: 'RunRequested', data: request({ task_id: taskId, created_by: 'agent-1' }) },
      { type: 'RunStarted', data: { worker: 'worker-1', attempt: 1, leased_until } },
      { type: 'RunFailed', data: { ...failure(), task_id: taskId } },
      { type: 'RunRetried', data: { run_id: newId(at), from: 'start' } },
    ]),
  );
  return taskId;
}

/** A run triggered by an event whose payload names another task, with a result that does too. */
export async function addRunNaming(
  store: EventStore,
  taskId: string,
  named: string,
  at: number,
): Promise<void> {
  const payload = { task_id: named };
  const published_at = toIso(at);
  const event = { id: newId(at), topic: 'seen', payload, source_agent_id: 'agent-1', published_at };
  const leased_until = toIso(at + 60_000);
  await store.appendInOrder(
    appendsOf(newId(at), at, [
      { type: 'RunRequested', data: request({ task_id: taskId, created_by: 'agent-1', event }) },
      { type: 'RunStarted', data: { worker: 'worker-1', attempt: 1, leased_until } },
      { type: 'RunSucceeded', data: { ...success({ output: payload }), task_id: taskId } },
    ]),
  );
}

/** The payload of an event that has triggered these tasks. */
export async function addStoredPayload(
  store: EventStore,
  triggered_tasks: string[],
  at: number,
): Promise<void> {
  const event_id = newId(at);
  const stream = streams.payload(event_id);
  // The payload names tasks that were not triggered.
  const data = { event_id, payload: { task_id: event_id }, triggered_tasks };
  const base = { actor: 'service', source: 'test', correlationId: event_id };
  const stored = { type: 'PayloadStored', data } as const;
  const events = toNewEvents(stream, [stored], { ...base, commandId: event_id, now: at });
  await store.append(stream, events, 'none');
}

function appendsOfRun(taskId: string, begun: number): readonly StreamAppend[] {
  const id = newId(begun);
  const leased_until = toIso(begun + 60_000);
  const events: readonly DomainEvent[] = [
    { type: 'RunRequested', data: request({ task_id: taskId, created_by: 'agent-1' }) },
    { type: 'RunStarted', data: { worker: oddText, attempt: 1, leased_until } },
    { type: 'RunSucceeded', data: { ...success(), task_id: taskId } },
  ];
  return appendsOf(id, begun, events);
}

function appendsOf(id: string, begun: number, events: readonly DomainEvent[]): StreamAppend[] {
  const stream = streams.run(id);
  const base = { actor: 'service', source: 'test', correlationId: id };
  return events.map((event, index) => {
    const context = { ...base, commandId: nameBasedId(id, String(index)), now: begun + index };
    const expected = index === 0 ? 'none' : index - 1;
    return { stream, events: toNewEvents(stream, [event], context), expected };
  });
}

/** A task, by default with a cron schedule for each minute. @returns its id */
export async function addTask(
  store: EventStore,
  at: number,
  fields: Parameters<typeof definition>[0] = {},
): Promise<string> {
  const taskId = newId(at);
  const context = { commandId: newId(at), actor: 'agent-1', source: 'test', correlationId: taskId };
  await createTaskCommand({
    store,
    taskId,
    definition: definition({ title: oddText, schedule_expr: '* * * * *', ...fields }),
    context: { ...context, now: at },
  });
  return taskId;
}

/** Entries of an extension's stream whose first ones are truncated. */
export async function addCutStream(
  store: EventStore,
  stream: string,
  entries: number,
  before: number,
): Promise<void> {
  const now = Date.parse('2026-05-01T00:00:00Z');
  const id = nameBasedId('test', stream);
  const context = { commandId: id, actor: 'service', source: 'test', correlationId: id, now };
  const events = Array.from({ length: entries }, (_, n): DomainEvent => {
    return { type: 'StreamEntryAdded', data: { data: { n } } };
  });
  await store.append(stream, toNewEvents(stream, events, context), 'none');
  await store.truncate(stream, before);
}

/** Writes an event as given: of an older release, or damaged. */
export async function addRaw(
  directory: string,
  stream: string,
  event: { readonly type: string; readonly data: string; readonly metadata: string },
): Promise<void> {
  const log = await openSqliteTransfer({ directory, create: true, telemetry: silent });
  try {
    const id = nameBasedId('raw', stream);
    await log.append([{ stream, expected: 'none', events: [{ id, ...event }] }]);
  } finally {
    await log.close();
  }
}

/** The fields of an archive's manifest that tests read. */
export function manifestIn(folder: string): {
  readonly events: number;
  readonly content_sha256: string;
  readonly id: string;
  readonly log: { readonly file: string; readonly sha256: string; readonly bytes: number };
  readonly truncations: { readonly streams: number };
} {
  return JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as ReturnType<
    typeof manifestIn
  >;
}

/** The SHA-256 of a file. */
export function sha256Of(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}
