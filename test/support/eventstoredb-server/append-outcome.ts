import type { AppendFault, Faults } from './faults.ts';
import {
  ANY,
  type Expected,
  type Log,
  type Place,
  type ProposedEvent,
  type StoredEvent,
  type Written,
} from './log.ts';

/** The default maximum of an append in a server: 1 MiB. */
export const MAX_APPEND_BYTES = 1024 * 1024;

/** An append as received. */
export interface ReceivedAppend {
  readonly stream: string;
  readonly expected: Expected;
  readonly events: readonly ProposedEvent[];
  readonly fault: AppendFault | 'none';
  /** Whether a node that is not the leader should say so. */
  readonly requiresLeader: boolean;
  /** Whether it came on a shared stream, or as a separate call. */
  readonly batched: boolean;
  /** How long the client gave the server, in milliseconds; only for a batched append. */
  readonly deadlineMs?: number;
}

/** The parts of a server that handle appends. */
export interface AppendingServer {
  readonly log: Log;
  readonly faults: Faults;
  /** The port of the leader at the time. */
  readonly leaderPort: () => number;
  readonly received: (append: ReceivedAppend) => void;
}

/**
 * The outcome of an append on a server, before either protocol encodes it. - `written`: at a revision and a position;
 * no position if the server does not know it - `lost`: the connection fails before the response - `not-ready`: the
 * server accepted nothing - `empty`: a response that says neither
 */
export type AppendOutcome =
  | { readonly kind: 'written'; readonly revision: number; readonly place: Place | undefined }
  | { readonly kind: 'wrong-version'; readonly current: number }
  | { readonly kind: 'deleted' | 'denied' | 'timed-out' | 'not-ready' | 'empty' }
  | { readonly kind: 'not-leader' }
  | { readonly kind: 'lost'; readonly how: 'unavailable' | 'cancelled' };

const ofFault: Readonly<Partial<Record<AppendFault, AppendOutcome>>> = {
  'unavailable-after-writing': { kind: 'lost', how: 'unavailable' },
  'cancelled-after-writing': { kind: 'lost', how: 'cancelled' },
  'timed-out-after-writing': { kind: 'timed-out' },
  'empty-answer': { kind: 'empty' },
};

/** Carries out a complete append. @param give called with the outcome, at once or later; never for a silent server */
export function carryOut(
  server: AppendingServer,
  append: Omit<ReceivedAppend, 'fault'>,
  give: (outcome: AppendOutcome) => void,
): void {
  const { log, faults } = server;
  const { stream, events, expected } = append;
  const fault = faults.takeAppend();
  server.received({ ...append, fault });
  if (faults.deniesAppends) return give({ kind: 'denied' });
  if (fault === 'unavailable-before-writing') return give({ kind: 'not-ready' });
  if (fault === 'lost-before-writing') return give({ kind: 'lost', how: 'unavailable' });
  if (fault === 'silent-before-writing') return;
  if (fault === 'not-leader' && append.requiresLeader) return give({ kind: 'not-leader' });
  const current = log.currentRevision(stream);
  if (fault === 'forgets-ids' && expected >= -1 && expected < current) {
    return give({ kind: 'wrong-version', current });
  }
  const isAnew = fault === 'forgets-ids' && expected === ANY;
  const written = log.append(stream, events, isAnew ? current : expected);
  const isSeen =
    written.kind !== 'written' || !written.repeated || log.visible(stream).includes(written.last);
  const answer = (): void => {
    if (fault !== 'silent-after-writing') give(outcomeOf(written, isSeen, fault));
  };
  if (written.kind !== 'written' || log.isShown(written.last)) return answer();
  // A repetition gets no response while the first is not visible yet
  // (`CommitDecision.IdempotentNotReady`).
  if (written.repeated) return;
  const stopListening = log.onWrite(() => {
    if (!log.isShown(written.last)) return;
    stopListening();
    answer();
  });
}

function outcomeOf(written: Written, isSeen: boolean, fault: AppendFault | 'none'): AppendOutcome {
  if (written.kind !== 'written') return written;
  const faulty = fault === 'none' ? undefined : ofFault[fault];
  if (faulty !== undefined) return faulty;
  const { revision } = written.last;
  const place = placeOf(written.last);
  if (fault === 'wrong-revision') return { kind: 'written', revision: revision + 1, place };
  // For a repetition, a server returns the position of its last event if that can be read
  // (`IndexWriter.CheckCommit`).
  const isPlaced = isSeen && fault !== 'no-position';
  return { kind: 'written', revision, place: isPlaced ? place : undefined };
}

function placeOf(event: StoredEvent): Place {
  return { commit: BigInt(event.commit), prepare: BigInt(event.prepare) };
}

/** Why an append is too large: one event (from 25.0 on), or all together. Undefined if it is not. */
export function tooLarge(
  events: readonly ProposedEvent[],
  largestEvent: number,
): { readonly event?: ProposedEvent; readonly size: number } | undefined {
  let bytes = 0;
  for (const event of events) {
    const size = sizeOf(event);
    if (size > largestEvent) return { event, size };
    bytes += size;
  }
  return bytes <= MAX_APPEND_BYTES ? undefined : { size: bytes };
}

/** The size as counted by a server, which counts each character of the type twice. */
function sizeOf({ type, data, metadata }: ProposedEvent): number {
  return data.length + metadata.length + 2 * type.length;
}
