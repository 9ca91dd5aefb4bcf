import shared from '@eventstore/db-client/generated/shared_pb.js';
import services from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { status, type ServerDuplexStream } from '@grpc/grpc-js';
import { Fields } from '../protobuf-fields.ts';
import { leads, toEvent } from './append-call.ts';
import { carryOut, tooLarge, type AppendingServer } from './append-outcome.ts';
import { appendTimedOut, appendTooLarge, badRequest, batchResponse } from './batch-messages.ts';
import { ANY, NO_STREAM, STREAM_EXISTS, type Expected, type ProposedEvent } from './log.ts';
import { failure, notLeader, streamNameOf, unavailable } from './messages.ts';

/** A request, with the deadline that the client's definition does not know. */
export interface BatchRequest {
  readonly message: streams.BatchAppendReq;
  /** Milliseconds; undefined if it has none. */
  readonly deadlineMs: number | undefined;
}

export type BatchCall = ServerDuplexStream<BatchRequest, streams.BatchAppendResp>;

/** The service's definition, with the requests of `BatchAppend` as {@link BatchRequest}. */
export const streamsService = {
  ...services.StreamsService,
  batchAppend: {
    ...services.StreamsService.batchAppend,
    requestSerialize: (): never => {
      throw new Error('a server sends no requests');
    },
    requestDeserialize: (bytes: Buffer): BatchRequest => ({
      message: streams.BatchAppendReq.deserializeBinary(bytes),
      deadlineMs: deadlineOf(new Fields(bytes)),
    }),
  },
};

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Field numbers of `BatchAppendReq`. */
const OPTIONS = 2;
const DEADLINE = 7;

interface Pending {
  readonly stream: string;
  readonly expected: Expected;
  readonly deadlineMs: number;
  readonly events: ProposedEvent[];
}

/**
 * Appends on a shared stream, handled as by a server of version 23.10 (`Streams.BatchAppend.cs`):
 * in order, each with its own response that names it. The call does not end when its requests do.
 */
export function handleBatchAppend(call: BatchCall, server: AppendingServer): void {
  const { faults } = server;
  if (faults.lacksBatchAppend) {
    call.emit('error', failure(status.UNIMPLEMENTED, 'Service is unimplemented.'));
    return;
  }
  if (faults.refusesUser) {
    call.emit('error', failure(status.UNAUTHENTICATED, 'Bad credentials'));
    return;
  }
  const pending = new Map<string, Pending>();
  call.on('data', ({ message, deadlineMs = Infinity }: BatchRequest) => {
    const id = message.getCorrelationId()?.getString() ?? '';
    const options = message.getOptions();
    const say = (response: streams.BatchAppendResp): void => {
      call.write(response.setCorrelationId(new shared.UUID().setString(id)));
    };
    if (options !== undefined) {
      if (deadlineMs <= 0) return say(appendTimedOut());
      const stream = streamNameOf(options.getStreamIdentifier());
      const expected = expectedOf(options);
      if (!pending.has(id)) pending.set(id, { stream, expected, deadlineMs, events: [] });
    }
    const append = pending.get(id);
    if (append === undefined) return;
    const proposed = message.getProposedMessagesList().map(toEvent);
    const invalid = proposed.find((event) => !UUID.test(event.id));
    // A server keeps such an append as incomplete until its deadline.
    if (invalid !== undefined) return say(badRequest('Unrecognized Guid format.'));
    append.events.push(...proposed);
    const received = { ...append, requiresLeader: leads(call), batched: true };
    const excess = tooLarge(append.events, faults.largestEvent);
    if (excess !== undefined) {
      pending.delete(id);
      server.received({ ...received, fault: 'none' });
      return say(appendTooLarge(excess.event !== undefined));
    }
    if (!message.getIsFinal()) return;
    pending.delete(id);
    carryOut(server, received, (outcome) => {
      // These end the whole stream: an exception in a server's answer, or a connection that fails.
      if (outcome.kind === 'not-leader') call.emit('error', notLeader(server.leaderPort()));
      else if (outcome.kind === 'lost') call.emit('error', lossOf(outcome.how));
      else say(batchResponse(outcome, append.stream, append.expected));
    });
  });
}

function lossOf(how: 'unavailable' | 'cancelled'): Error {
  if (how === 'unavailable') return unavailable();
  return failure(status.CANCELLED, 'The server is shutting down');
}

function expectedOf(options: streams.BatchAppendReq.Options): Expected {
  if (options.hasNoStream()) return NO_STREAM;
  if (options.hasStreamExists()) return STREAM_EXISTS;
  return options.hasStreamPosition() ? Number(options.getStreamPosition()) : ANY;
}

/** In milliseconds, from a request's bytes. */
function deadlineOf(request: Fields): number | undefined {
  const duration = request.one(OPTIONS)?.one(DEADLINE);
  return duration === undefined ? undefined : duration.number(1) * 1_000 + duration.number(2) / 1e6;
}
