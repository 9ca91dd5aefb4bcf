import type { EventStore, RecordedEvent } from '../event-store.ts';
import { streams } from '../streams.ts';
import { note, type Note, type RecordOf } from './explanation.ts';
import { excerpt, triggerWords, type Words } from './words.ts';

/** How many events are read at the beginning and end of a run: it may have thousands of steps. */
const HEAD = 8;
const TAIL = 4;

/** What the log says of a run: how it began and how it stands. Its steps are not read. */
export interface RunAccount {
  readonly id: string;
  /** Null for a stream that is empty, or abandoned. */
  readonly first: RecordOf<'RunRequested' | 'RunSkipped'> | null;
  /** Its first start, where that is among its first events. */
  readonly started: RecordOf<'RunStarted'> | null;
  /** The last event about its state. */
  readonly last: RecordedEvent | null;
}

/** Reads both ends of a run's stream. */
export async function readRun(store: EventStore, id: string): Promise<RunAccount> {
  const stream = streams.run(id);
  const [head, tail] = await Promise.all([
    store.readStream(stream, { limit: HEAD }),
    store.readStream(stream, { direction: 'backwards', limit: TAIL }),
  ]);
  const [first] = head;
  const begun = first?.type === 'RunRequested' || first?.type === 'RunSkipped' ? first : null;
  const started = head.find((event) => event.type === 'RunStarted') ?? null;
  // These three say nothing about how the run stands.
  const others: readonly string[] = ['RunRetried', 'RunRemoved', 'Abandoned'];
  const last = tail.find(({ type }) => !others.includes(type)) ?? null;
  return { id, first: begun, started, last };
}

/** The event that skipped a run; null for one that runs, or ran. */
export function skipOf({ last }: RunAccount): RecordOf<'RunSkipped'> | null {
  return last?.type === 'RunSkipped' ? last : null;
}

/** How a run stands, as the end of a sentence: `succeeded at …`. */
export function standing({ first, started, last }: RunAccount, words: Words): string {
  if (first === null || last === null) return 'is about to be requested';
  const at = words.time(last);
  const attempts = (attempt: number): string => (attempt > 1 ? `, in attempt ${attempt}` : '');
  switch (last.type) {
    case 'RunRequested':
      return `has been waiting for a worker since ${at} and may start from ${words.at(last.data.run_at)}`;
    case 'RunStarted':
    case 'RunStepCompleted': {
      const since =
        started === null ? 'is running' : `has been running since ${words.time(started)}`;
      return `${since}${attempts(last.data.attempt)}`;
    }
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

/** A sentence about a run beside others: its id, what requested it, and how it stands. */
export function runNote(run: RunAccount, words: Words): Note {
  const { first, id, last } = run;
  if (first === null) return note(`Run ${id} was reserved but never requested.`, last);
  const { trigger, scheduled_for } = first.data;
  const when =
    scheduled_for === null ? `at ${words.time(first)}` : `for ${words.at(scheduled_for)}`;
  const sentence = `Run ${id} (requested ${triggerWords[trigger]} ${when}) ${standing(run, words)}.`;
  return note(sentence, first, last);
}
