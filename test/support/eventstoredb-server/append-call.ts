import streams from '@eventstore/db-client/generated/streams_pb.js';
import {
  status,
  type Metadata,
  type ServerReadableStream,
  type sendUnaryData,
} from '@grpc/grpc-js';
import {
  MAX_APPEND_BYTES,
  carryOut,
  tooLarge,
  type AppendOutcome,
  type AppendingServer,
} from './append-outcome.ts';
import type { Expected, ProposedEvent } from './log.ts';
import {
  expectedOf,
  failure,
  notLeader,
  streamDeleted,
  streamNameOf,
  successMessage,
  unavailable,
  wrongVersionMessage,
} from './messages.ts';

type Callback = sendUnaryData<streams.AppendResp>;

/** The classic append: a header, then the events one by one, then one response. */
export function handleAppend(
  call: ServerReadableStream<streams.AppendReq, streams.AppendResp>,
  callback: Callback,
  server: AppendingServer,
): void {
  let stream = '';
  let expected: Expected = 0;
  const events: ProposedEvent[] = [];
  let refused = false;
  const append = () => ({ stream, expected, events, requiresLeader: leads(call), batched: false });
  call.on('data', (request: streams.AppendReq) => {
    if (refused) return;
    const options = request.getOptions();
    if (options !== undefined) {
      stream = streamNameOf(options.getStreamIdentifier());
      expected = expectedOf(options);
    }
    const proposed = request.getProposedMessage();
    if (proposed !== undefined) events.push(toEvent(proposed));
    const refusal = refusalOf(events, server.faults.largestEvent);
    if (refusal === undefined) return;
    // The refusal is sent as soon as the append is too large, while the client may still be
    // sending.
    refused = true;
    server.received({ ...append(), fault: 'none' });
    callback(refusal);
  });
  call.on('end', () =>
    setImmediate(() => {
      // If the call was canceled while being sent, the server did not receive all of it, and writes
      // nothing. It learns of the cancellation only after the end of the call.
      if (call.cancelled || refused) return;
      carryOut(server, append(), (outcome) => {
        answer(outcome, stream, expected, server.leaderPort(), callback);
      });
    }),
  );
}

/** Whether a call asks for the leader. */
export function leads(call: { readonly metadata: Metadata }): boolean {
  return call.metadata.get('requires-leader')[0] === 'true';
}

function answer(
  outcome: AppendOutcome,
  stream: string,
  expected: Expected,
  leaderPort: number,
  callback: Callback,
): void {
  switch (outcome.kind) {
    case 'written':
      return callback(null, successMessage(outcome.revision, outcome.place));
    case 'wrong-version':
      return callback(null, wrongVersionMessage(expected, outcome.current));
    case 'deleted':
      return callback(streamDeleted(stream));
    case 'denied':
      return callback(
        failure(status.PERMISSION_DENIED, 'Access Denied', { exception: 'access-denied' }),
      );
    case 'not-ready':
      return callback(unavailable());
    case 'not-leader':
      return callback(notLeader(leaderPort));
    case 'timed-out':
      return callback(failure(status.ABORTED, 'Commit timeout'));
    case 'empty':
      return callback(null, new streams.AppendResp());
    case 'lost':
      if (outcome.how === 'unavailable') return callback(unavailable());
      return callback(failure(status.CANCELLED, 'The server is shutting down'));
  }
}

/** An event as both protocols send it. */
export function toEvent(
  message: streams.AppendReq.ProposedMessage | streams.BatchAppendReq.ProposedMessage,
): ProposedEvent {
  const headers = message.getMetadataMap();
  return {
    id: message.getId()?.getString() ?? '',
    type: headers.get('type') ?? '',
    contentType: headers.get('content-type') ?? '',
    data: message.getData_asU8(),
    metadata: message.getCustomMetadata_asU8(),
  };
}

function refusalOf(
  events: readonly ProposedEvent[],
  largestEvent: number,
): ReturnType<typeof failure> | undefined {
  const excess = tooLarge(events, largestEvent);
  if (excess === undefined) return undefined;
  if (excess.event !== undefined) {
    return failure(status.INVALID_ARGUMENT, 'Exceeds Maximum Append Event Size.', {
      exception: 'maximum-append-event-size-exceeded',
      'maximum-append-event-size': String(largestEvent),
      'event-id': excess.event.id,
      'proposed-append-event-size': String(excess.size),
    });
  }
  return failure(status.INVALID_ARGUMENT, 'Maximum Append Size Exceeded.', {
    exception: 'maximum-append-size-exceeded',
    'maximum-append-size': String(MAX_APPEND_BYTES),
  });
}
