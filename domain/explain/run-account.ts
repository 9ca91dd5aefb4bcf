import type { EventStore, RecordedEvent } from '../event-store.ts';
import { load } from '../handle.ts';
import { readKey } from '../keys/key-stream.ts';
import { runFold } from '../runs/run.ts';
import { isOpen, noWaits, type Wait, type WaitsFor } from '../runs/run-waits.ts';
import { streams } from '../streams.ts';
import { taskAt } from '../tasks/task-at.ts';
import { note, type Note, type RecordOf } from './explanation.ts';
import { excerpt, triggerWords, type Words } from './words.ts';

/** How many events are read at the beginning and end of a run: it may have thousands of steps. */
const HEAD = 8;
const TAIL = 4;

/** The log's account of a run: its start, and its present state. Its steps are not read. */
export interface RunAccount {
  readonly id: string;
  /** Null for a stream that is empty, or abandoned. */
  readonly first: RecordOf<'RunRequested' | 'RunSkipped'> | null;
  /** Its first start, if that is among its first events. */
  readonly started: RecordOf<'RunStarted'> | null;
  /** The last event about its state. */
  readonly last: RecordedEvent | null;
  /** The conditions for which its steps wait, if its last events are about those. */
  readonly waits: readonly Wait[];
  /** The concurrency key that blocks it, with the runs that hold it; null if none does. */
  readonly key: { readonly key: string; readonly holders: readonly string[] } | null;
}

/** Reads both ends of a run's stream, with a single read if it is short. */
export async function readRun(store: EventStore, id: string): Promise<RunAccount> {
  const stream = streams.run(id);
  const head = await store.readStream(stream, { limit: HEAD });
  const isWhole = head.length < HEAD;
  const tail = isWhole
    ? head.slice(-TAIL).reverse()
    : await store.readStream(stream, { direction: 'backwards', limit: TAIL });
  const [first] = head;
  const begun = first?.type === 'RunRequested' || first?.type === 'RunSkipped' ? first : null;
  const started = head.find((event) => event.type === 'RunStarted') ?? null;
  // These three types say nothing about the state of the run.
  const others: readonly string[] = ['RunRetried', 'RunRemoved', 'Abandoned'];
  const last = tail.find(({ type }) => !others.includes(type)) ?? null;
  const isWaiting = last?.type === 'RunReleased' || last?.type === 'RunStepSuspended';
  const waits = isWaiting ? await openWaits(store, stream) : noWaits;
  const isQueued = last !== null && queuedTypes.has(last.type);
  const key = isQueued && begun !== null ? await busyKey(store, id, begun.data) : null;
  return { id, first: begun, started, last, waits, key };
}

/** After these events, a run is in the queue, unless its time has not come. */
const queuedTypes: ReadonlySet<string> = new Set([
  'RunRequested',
  'RunStepResumed',
  'RunInterrupted',
]);

async function busyKey(
  store: EventStore,
  runId: string,
  { task_id, task_revision }: { readonly task_id: string; readonly task_revision: number },
): Promise<RunAccount['key']> {
  const { definition } = await taskAt(store, task_id, task_revision);
  const { concurrency_key: key, concurrency_limit: limit, created_by: owner } = definition;
  if (key === null) return null;
  const state = await readKey(store, { kind: 'concurrency', owner, key });
  const holders = (state?.holders ?? []).map(({ run_id }) => run_id);
  return holders.length < limit || holders.includes(runId) ? null : { key, holders };
}

async function openWaits(store: EventStore, stream: string): Promise<readonly Wait[]> {
  const { state } = await load(store, stream, runFold);
  return 'request' in state ? state.waits.filter(isOpen) : noWaits;
}

/** How many waits, or holders of a key, are named. */
const MAX_NAMED = 3;

function keyWords({ key, holders }: NonNullable<RunAccount['key']>, since: string): string {
  const named = holders.slice(0, MAX_NAMED).map((id) => `run ${id}`);
  const more = holders.length > MAX_NAMED ? ` and ${holders.length - MAX_NAMED} more` : '';
  return `has been waiting since ${since} for the concurrency key ${key}, held by ${named.join(', ')}${more}`;
}

function waitingWords(waits: readonly Wait[], words: Words): string {
  const named = waits.slice(0, MAX_NAMED).map(({ step, waits_for, since, until }) => {
    const span = `since ${words.at(since)}, until ${words.at(until)}`;
    return `${awaited(waits_for)} (step ${step}, ${span})`;
  });
  const more = waits.length > MAX_NAMED ? ` and ${waits.length - MAX_NAMED} more` : '';
  return `waits for ${named.join(', for ')}${more}`;
}

const readyWords = (what: string, since: string): string =>
  `has been waiting since ${since} and waits for ${what}`;

/** The condition for which a step waits, as the object of `waits for`. */
export function awaited(waitsFor: WaitsFor): string {
  switch (waitsFor.kind) {
    case 'timer':
      return 'a time';
    case 'event':
      return `an event on topic ${waitsFor.topic}`;
    case 'approval':
      return `an approval: "${excerpt(waitsFor.message)}"`;
    case 'run':
      return `the end of run ${waitsFor.run_id}`;
    case 'callback':
      return 'its callback';
    case 'job':
      return `a worker that offers ${waitsFor.tool}`;
  }
}

/** The event that skipped a run; null for a run that was not skipped. */
export function skipOf({ last }: RunAccount): RecordOf<'RunSkipped'> | null {
  return last?.type === 'RunSkipped' ? last : null;
}

/** The state of a run, as the end of a sentence: `succeeded at …`. */
export function standing({ first, started, last, waits, key }: RunAccount, words: Words): string {
  if (first === null || last === null) return 'is about to be requested';
  const at = words.time(last);
  if (key !== null) return keyWords(key, at);
  const attempts = (attempt: number): string => (attempt > 1 ? `, in attempt ${attempt}` : '');
  switch (last.type) {
    case 'RunRequested':
      if (words.readyRunsWaitFor !== null) return readyWords(words.readyRunsWaitFor, at);
      return `has been waiting for a worker since ${at} and may start from ${words.at(last.data.run_at)}`;
    case 'RunStarted':
    case 'RunStepCompleted': {
      const since =
        started === null ? 'is running' : `has been running since ${words.time(started)}`;
      return `${since}${attempts(last.data.attempt)}`;
    }
    case 'RunStepSuspended':
    case 'RunReleased':
      return waits.length === 0 ? `was left by its worker at ${at}` : waitingWords(waits, words);
    case 'RunStepResumed':
      if (words.readyRunsWaitFor !== null) return readyWords(words.readyRunsWaitFor, at);
      return `has been waiting for a worker since its step ${last.data.step} resumed at ${at}`;
    case 'RunCancelRequested':
      return `was asked to stop at ${at} ${words.by(last)}`;
    case 'RunInterrupted':
      return `lost its worker at ${at} and waits to continue elsewhere`;
    case 'RunAttemptFailed':
      return (
        `failed in attempt ${last.data.attempt} at ${at} (${excerpt(last.data.error)}) ` +
        `and will be retried at ${words.at(last.data.retry_at)}`
      );
    case 'RunSucceeded':
      return `succeeded at ${at}${attempts(last.data.attempt)}`;
    case 'RunFailed':
      return `failed at ${at}${attempts(last.data.attempt)}: ${excerpt(last.data.error)}`;
    case 'RunCanceled':
      return last.data.attempt === 0
        ? `was canceled at ${at}, before it started, ${words.by(last)}`
        : `was canceled at ${at}`;
    case 'RunSkipped':
      return `was skipped at ${at} (${last.data.reason})`;
    default:
      return `recorded ${last.type} last, at ${at}`;
  }
}

/** A sentence about one of several runs: its id, what requested it, and its present state. */
export function runNote(run: RunAccount, words: Words): Note {
  const { first, id, last } = run;
  if (first === null) return note(`Run ${id} was reserved but never requested.`, last);
  const { trigger, scheduled_for } = first.data;
  const when =
    scheduled_for === null ? `at ${words.time(first)}` : `for ${words.at(scheduled_for)}`;
  const sentence = `Run ${id} (requested ${triggerWords[trigger]} ${when}) ${standing(run, words)}.`;
  return note(sentence, first, last);
}
