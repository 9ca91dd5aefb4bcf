import streams from '@eventstore/db-client/generated/streams_pb.js';
import { status, type ServerReadableStream, type sendUnaryData } from '@grpc/grpc-js';
import type { AppendFault, Faults } from './faults.ts';
import type { Expected, Log, ProposedEvent, StoredEvent, Written } from './log.ts';
import {
  expectedOf,
  failure,
  streamDeleted,
  streamNameOf,
  successMessage,
  unavailable,
  wrongVersionMessage,
} from './messages.ts';

/** The largest append a server takes unless configured otherwise: 1 MiB. */
export const MAX_APPEND_BYTES = 1024 * 1024;

/** An append as it arrived. */
export interface ReceivedAppend {
  readonly stream: string;
  readonly expected: Expected;
  readonly events: readonly ProposedEvent[];
  readonly fault: AppendFault | 'none';
}

type Callback = sendUnaryData<streams.AppendResp>;

/** The classic append: a header, then the events one by one, then one answer. */
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
  call.on('data', (request: streams.AppendReq) => {
    const options = request.getOptions();
    if (options !== undefined) {
      stream = streamNameOf(options.getStreamIdentifier());
      expected = expectedOf(options);
    }
    const proposed = request.getProposedMessage();
    if (proposed !== undefined) events.push(toEvent(proposed));
  });
  call.on('end', () => {
    const fault = server.faults.takeAppend();
    server.received({ stream, expected, events, fault });
    const bytes = events.reduce((sum, event) => sum + event.data.length + event.metadata.length, 0);
    if (bytes > MAX_APPEND_BYTES) return callback(tooLarge());
    if (fault === 'unavailable-before-writing') return callback(unavailable());
    if (fault === 'silent-before-writing') return;
    if (fault === 'not-leader') return callback(notLeader(server.port));
    const current = server.log.currentRevision(stream);
    if (fault === 'forgets-ids' && expected >= -1 && expected < current) {
      return callback(null, wrongVersionMessage(expected, current));
    }
    const written = server.log.append(stream, events, expected);
    answer(written, fault, stream, expected, callback);
  });
}

function answer(
  written: Written,
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
      // Of a repetition real servers give no position, or that of its first event.
      return callback(
        null,
        successMessage(revision, written.repeated ? undefined : placeOf(written.last)),
      );
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

function tooLarge(): ReturnType<typeof failure> {
  const trailers = {
    exception: 'maximum-append-size-exceeded',
    'maximum-append-size': String(MAX_APPEND_BYTES),
  };
  return failure(status.INVALID_ARGUMENT, 'Maximum Append Size Exceeded.', trailers);
}

function notLeader(port: number): ReturnType<typeof failure> {
  return failure(status.NOT_FOUND, 'Leader info available', {
    exception: 'not-leader',
    'leader-endpoint-host': '127.0.0.1',
    'leader-endpoint-port': String(port),
  });
}
