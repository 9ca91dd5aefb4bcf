import type { EventStore, RecordedEvent } from '../event-store.ts';
import { streams } from '../streams.ts';
import type { RunSkipReason } from '../vocabulary.ts';
import type { RecordOf } from './explanation.ts';
import { excerpt, triggerWords, type Words } from './words.ts';

/** Of a run's beginning and end, so many events are read: a run may have thousands of steps. */
const HEAD = 8;
const TAIL = 4;

/** What a run's stream can say of its standing; what is noted beside (that it was retried by another) is not that. */
const standings: ReadonlySet<string> = new Set([
  'RunRequested',
  'RunSkipped',
  'RunStarted',
  'RunStepCompleted',
  'RunInterrupted',
  'RunAttemptFailed',
  'RunSucceeded',
  'RunFailed',
  'RunCancelRequested',
  'RunCanceled',
]);

/** What the log says of a run: how it began and how it stands. Its steps are not read. */
export interface RunAccount {
  readonly id: string;
  /** null for a stream that is empty, or was given up. */
  readonly first: RecordOf<'RunRequested' | 'RunSkipped'> | null;
  /** Its first start, where that is among its first events. */
  readonly started: RecordOf<'RunStarted'> | null;
  /** What it says last of its standing. */
  readonly last: RecordedEvent | null;
}

/** Reads the two ends of a run's stream. */
export async function readRun(store: EventStore, id: string): Promise<RunAccount> {
  const stream = streams.run(id);
  const [head, tail] = await Promise.all([
    store.readStream(stream, { limit: HEAD }),
    store.readStream(stream, { direction: 'backwards', limit: TAIL }),
  ]);
  const [first] = head;
  const begun = first?.type === 'RunRequested' || first?.type === 'RunSkipped' ? first : null;
  const started = head.find((event) => event.type === 'RunStarted') ?? null;
  const last = tail.find(({ type }) => standings.has(type)) ?? null;
  return { id, first: begun, started, last };
}

/** Why a run was recorded as not running, and by which event; null for one that runs, or ran. */
export function skipOf({
  last,
}: RunAccount): { readonly event: RecordOf<'RunSkipped'>; readonly reason: RunSkipReason } | null {
  return last?.type === 'RunSkipped' ? { event: last, reason: last.data.reason } : null;
}

/** How a run stands, as the end of a sentence about it: `succeeded at …`. */
export function standing({ first, started, last }: RunAccount, words: Words): string {
  if (first === null || last === null) return 'is about to be requested';
  const at = words.at(last.metadata.occurredAt);
  const attempts = (attempt: number): string => (attempt > 1 ? `, in attempt ${attempt}` : '');
  switch (last.type) {
    case 'RunRequested':
      return `waits for a worker since ${at} and may start from ${words.at(last.data.run_at)} on`;
    case 'RunStarted':
    case 'RunStepCompleted': {
      const since = started === null ? '' : ` since ${words.at(started.metadata.occurredAt)}`;
      return `is running${since}${attempts(last.data.attempt)}`;
    }
    case 'RunCancelRequested':
      return `was told to stop ${words.by(last)} at ${at}`;
    case 'RunInterrupted':
      return `lost its worker at ${at} and waits to go on elsewhere`;
    case 'RunAttemptFailed':
      return (
        `failed in attempt ${last.data.attempt} at ${at} (${excerpt(last.data.error)}) ` +
        `and is tried again at ${words.at(last.data.retry_at)}`
      );
    case 'RunSucceeded':
      return `succeeded at ${at}${attempts(last.data.attempt)}`;
    case 'RunFailed':
      return `failed at ${at}${attempts(last.data.attempt)}: ${excerpt(last.data.error)}`;
    case 'RunCanceled':
      return last.data.attempt === 0
        ? `was canceled ${words.by(last)} at ${at}, before it began`
        : `was canceled at ${at}`;
    case 'RunSkipped':
      return `was recorded at ${at} as not running (${last.data.reason})`;
    default:
      return `stands at ${last.type} since ${at}`;
  }
}

/** A run as one names it beside others: its id, what it comes from, and how it stands. */
export function described(run: RunAccount, words: Words): string {
  const { first, id } = run;
  if (first === null) return `run ${id}, which was reserved and never requested`;
  const { trigger, scheduled_for } = first.data;
  const from =
    scheduled_for === null
      ? `${triggerWords[trigger]} at ${words.at(first.metadata.occurredAt)}`
      : `${triggerWords[trigger]} for ${words.at(scheduled_for)}`;
  return `run ${id} (requested ${from}), which ${standing(run, words)}`;
}

/** The events of a run that an explanation rests on. */
export function eventsOf({ first, last }: RunAccount): readonly (RecordedEvent | null)[] {
  return [first, last];
}
