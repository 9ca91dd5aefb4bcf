import streams from '@eventstore/db-client/generated/streams_pb.js';
import {
  status,
  type Metadata,
  type ServerReadableStream,
  type sendUnaryData,
} from '@grpc/grpc-js';
import type { AppendFault, Faults } from './faults.ts';
import {
  ANY,
  type Expected,
  type Log,
  type ProposedEvent,
  type StoredEvent,
  type Written,
} from './log.ts';
import {
  expectedOf,
  failure,
  streamDeleted,
  streamNameOf,
  successMessage,
  unavailable,
  wrongVersionMessage,
} from './messages.ts';

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
}

type Callback = sendUnaryData<streams.AppendResp>;

/** The classic append: a header, then the events one by one, then one response. */
export function handleAppend(
  call: ServerReadableStream<streams.AppendReq, streams.AppendResp>,
  callback: Callback,
  server: {
    readonly log: Log;
    readonly faults: Faults;
    readonly port: number;
    readonly received: (append: ReceivedAppend) => void;
  },
): void {
  let stream = '';
  let expected: Expected = 0;
  const events: ProposedEvent[] = [];
  let refused = false;
  call.on('data', (request: streams.AppendReq) => {
    if (refused) return;
    const options = request.getOptions();
    if (options !== undefined) {
      stream = streamNameOf(options.getStreamIdentifier());
      expected = expectedOf(options);
    }
    const proposed = request.getProposedMessage();
    if (proposed !== undefined) events.push(toEvent(proposed));
    const refusal = tooLarge(events, server.faults.largestEvent);
    if (refusal === undefined) return;
    // As soon as it is too large, whatever the client still sends.
    refused = true;
    server.received({ stream, expected, events, fault: 'none', requiresLeader: leads(call) });
    callback(refusal);
  });
  call.on('end', () =>
    setImmediate(() => {
      // Canceled while being sent: the server did not receive all of it, and writes none. It learns
      // of this after the end.
      if (call.cancelled || refused) return;
      const fault = server.faults.takeAppend();
      const requiresLeader = leads(call);
      server.received({ stream, expected, events, fault, requiresLeader });
      if (fault === 'unavailable-before-writing') return callback(unavailable());
      if (fault === 'silent-before-writing') return;
      if (fault === 'not-leader' && requiresLeader) return callback(notLeader(server.port));
      const current = server.log.currentRevision(stream);
      if (fault === 'forgets-ids' && expected >= -1 && expected < current) {
        return callback(null, wrongVersionMessage(expected, current));
      }
      const isAnew = fault === 'forgets-ids' && expected === ANY;
      const written = server.log.append(stream, events, isAnew ? current : expected);
      const isSeen =
        written.kind !== 'written' ||
        !written.repeated ||
        server.log.visible(stream).includes(written.last);
      const give = (): void => answer(written, isSeen, fault, stream, expected, callback);
      if (written.kind !== 'written' || server.log.isShown(written.last)) return give();
      // A repetition gets no response while the first is not visible yet
      // (`CommitDecision.IdempotentNotReady`).
      if (written.repeated) return;
      const stopListening = server.log.onWrite(() => {
        if (!server.log.isShown(written.last)) return;
        stopListening();
        give();
      });
    }),
  );
}

function leads(call: { readonly metadata: Metadata }): boolean {
  return call.metadata.get('requires-leader')[0] === 'true';
}

function answer(
  written: Written,
  isSeen: boolean,
  fault: AppendFault | 'none',
  stream: string,
  expected: Expected,
  callback: Callback,
): void {
  if (written.kind === 'deleted') return callback(streamDeleted(stream));
  if (written.kind === 'wrong-version') {
    return callback(null, wrongVersionMessage(expected, written.current));
  }
  const { revision } = written.last;
  switch (fault) {
    case 'unavailable-after-writing':
      return callback(unavailable());
    case 'cancelled-after-writing':
      return callback(failure(status.CANCELLED, 'The server is shutting down'));
    case 'timed-out-after-writing':
      return callback(failure(status.ABORTED, 'Commit timeout'));
    case 'silent-after-writing':
      return;
    case 'no-position':
      return callback(null, successMessage(revision, undefined));
    case 'wrong-revision':
      return callback(null, successMessage(revision + 1, placeOf(written.last)));
    case 'empty-answer':
      return callback(null, new streams.AppendResp());
    default:
      // For a repetition, a server returns the position of its last event if that can be read
      // (`IndexWriter.CheckCommit`).
      return callback(null, successMessage(revision, isSeen ? placeOf(written.last) : undefined));
  }
}

function placeOf(event: StoredEvent): { commit: bigint; prepare: bigint } {
  return { commit: BigInt(event.commit), prepare: BigInt(event.prepare) };
}

function toEvent(message: streams.AppendReq.ProposedMessage): ProposedEvent {
  const headers = message.getMetadataMap();
  return {
    id: message.getId()?.getString() ?? '',
    type: headers.get('type') ?? '',
    contentType: headers.get('content-type') ?? '',
    data: message.getData_asU8(),
    metadata: message.getCustomMetadata_asU8(),
  };
}

/** Why an append is too large, if it is: because of one event, or all together. */
function tooLarge(
  events: readonly ProposedEvent[],
  largestEvent: number,
): ReturnType<typeof failure> | undefined {
  let bytes = 0;
  for (const event of events) {
    const size = sizeOf(event);
    if (size > largestEvent) {
      return failure(status.INVALID_ARGUMENT, 'Exceeds Maximum Append Event Size.', {
        exception: 'maximum-append-event-size-exceeded',
        'maximum-append-event-size': String(largestEvent),
        'event-id': event.id,
        'proposed-append-event-size': String(size),
      });
    }
    bytes += size;
  }
  if (bytes <= MAX_APPEND_BYTES) return undefined;
  return failure(status.INVALID_ARGUMENT, 'Maximum Append Size Exceeded.', {
    exception: 'maximum-append-size-exceeded',
    'maximum-append-size': String(MAX_APPEND_BYTES),
  });
}

/** As a server counts: each character of the type counts twice. */
function sizeOf({ type, data, metadata }: ProposedEvent): number {
  return data.length + metadata.length + 2 * type.length;
}

function notLeader(port: number): ReturnType<typeof failure> {
  return failure(status.NOT_FOUND, 'Leader info available', {
    exception: 'not-leader',
    'leader-endpoint-host': '127.0.0.1',
    'leader-endpoint-port': String(port),
  });
}
