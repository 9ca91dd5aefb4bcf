import type streams from '@eventstore/db-client/generated/streams_pb.js';
import { status, type ServerWritableStream } from '@grpc/grpc-js';
import type { Faults } from './faults.ts';
import type { Log, Place, StoredEvent } from './log.ts';
import {
  eventMessage,
  failure,
  streamDeleted,
  streamNameOf,
  streamNotFoundMessage,
  unavailable,
} from './messages.ts';

export type ReadCall = ServerWritableStream<streams.ReadReq, streams.ReadResp>;

/** The direction of a read, as encoded in the protocol. */
export const BACKWARDS = 1;

/** A read of a stream or of `$all`, from either end, up to a number of events. */
export async function handleRead(call: ReadCall, log: Log, faults: Faults): Promise<void> {
  const options = call.request.getOptions();
  if (options === undefined) throw new Error('a read without options');
  const fault = faults.takeRead();
  if (fault === 'silent') return;
  if (fault === 'unavailable') return fail(call, unavailable());
  const backwards = options.getReadDirection() === BACKWARDS;
  const ofStream = options.getStream();
  const all = options.getAll();
  let events: readonly StoredEvent[] = [];
  if (ofStream !== undefined) {
    const stream = streamNameOf(ofStream.getStreamIdentifier());
    if (log.isTombstoned(stream)) return fail(call, streamDeleted(stream));
    if (log.isGone(stream)) {
      call.write(streamNotFoundMessage(stream));
      call.end();
      return;
    }
    events = ofStreamFrom(log.visible(stream), ofStream, backwards);
  } else if (all !== undefined) {
    const place = placeOf(all);
    if (place !== undefined && !log.canBeReadFrom(place, backwards)) {
      return fail(call, failure(status.UNKNOWN, 'Unexpected ReadAllResult: Error'));
    }
    events = ofAllFrom(log, all, backwards);
  }
  const count = Number(options.getCount());
  const withPosition = ofStream === undefined || !faults.noPositionsInStreams;
  let sent = 0;
  for (const event of events.slice(0, count)) {
    if (fault === 'breaks-midway' && sent === 1) return fail(call, unavailable());
    await send(call, eventMessage(event, withPosition));
    sent += 1;
    if (call.cancelled) return;
  }
  call.end();
}

function ofStreamFrom(
  visible: readonly StoredEvent[],
  from: streams.ReadReq.Options.StreamOptions,
  backwards: boolean,
): readonly StoredEvent[] {
  const revision = Number(from.getRevision());
  if (backwards) {
    const upTo = from.hasRevision() ? revision : Infinity;
    return visible.filter((event) => event.revision <= upTo).reverse();
  }
  return from.hasRevision() ? visible.filter((event) => event.revision >= revision) : visible;
}

/** Forward reads include their start position, backward reads do not, as on a real server. */
function ofAllFrom(
  log: Log,
  from: streams.ReadReq.Options.AllOptions,
  backwards: boolean,
): readonly StoredEvent[] {
  const place = placeOf(from);
  if (backwards) {
    const end = place === undefined ? log.all.length : log.indexOf(place);
    // A position that names the start of a page (commit, 0) excludes the event right before it
    // (`AllReader`).
    const right = place?.prepare === 0n && place.commit > 0n ? 1 : 0;
    return log.all.slice(0, from.hasStart() ? 0 : Math.max(0, end - right)).reverse();
  }
  if (from.hasEnd()) return [];
  return log.all.slice(place === undefined ? 0 : log.indexOf(place));
}

/** The start position of a request, if it names one. */
export function placeOf(from: streams.ReadReq.Options.AllOptions): Place | undefined {
  const position = from.getPosition();
  if (position === undefined) return undefined;
  return {
    commit: BigInt(position.getCommitPosition()),
    prepare: BigInt(position.getPreparePosition()),
  };
}

/** Sends one message, and waits while the client applies backpressure. */
export async function send(call: ReadCall, message: streams.ReadResp): Promise<void> {
  if (call.write(message) || call.cancelled) return;
  const endings = ['drain', 'cancelled', 'close'] as const;
  await new Promise<void>((resolve) => {
    const go = (): void => {
      for (const ending of endings) call.off(ending, go);
      resolve();
    };
    for (const ending of endings) call.on(ending, go);
  });
}

/** Ends a call with an error. */
export function fail(call: ReadCall, error: Error): void {
  call.emit('error', error);
}
