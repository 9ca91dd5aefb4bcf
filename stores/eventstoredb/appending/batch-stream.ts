import {
  NotLeaderError,
  convertToCommandError,
  type AppendResult as Answer,
} from '@eventstore/db-client';
import type streams from '@eventstore/db-client/generated/streams_pb.js';
import { NotWrittenError, describeError, isRefusedCall } from '../connecting/client-errors.ts';
import type { BatchCall, Connection } from '../connecting/connection.ts';
import { readBatchAnswer } from './batch-answer.ts';
import type { BatchedAppend } from './batched-append.ts';

/** The most unanswered appends at a time. A server answers several thousand per second. */
const MAX_IN_FLIGHT = 500;

type Channel = Connection['channel'];

/** The reports of a stream to its owner. */
interface Owner {
  /** Called when the node did not accept an append. */
  notTaken(channel: Channel): void;
  /** Called when the stream ended by itself. @param wasOfUse whether it has answered an append */
  ended(channel: Channel, error: Error, wasOfUse: boolean): void;
}

/** A running call of `BatchAppend`: appends go in, and answers come out in any order. */
export class BatchStream {
  /** The channel that the call runs on. */
  readonly channel: Channel;
  readonly #call: BatchCall;
  readonly #owner: Owner;
  /** Appends by id; null if nobody waits for the response any longer. */
  readonly #unanswered = new Map<string, BatchedAppend | null>();
  /** The number of appends that somebody waits for. */
  #awaited = 0;
  #canWrite = true;
  #wasOfUse = false;
  #isRetired = false;
  #hasEnded = false;
  #wake: () => void = () => undefined;

  constructor(call: BatchCall, channel: Channel, owner: Owner) {
    this.#call = call;
    this.channel = channel;
    this.#owner = owner;
    call.on('data', (answer: streams.BatchAppendResp) => this.#receive(answer));
    call.on('drain', () => {
      this.#canWrite = true;
      this.#wake();
    });
    call.on('error', (error: Error) => this.#end(error));
    call.on('status', () => this.#end(new Error('the server ended it')));
  }

  /** Whether it accepts further appends, now or later. */
  get isOpen(): boolean {
    return !this.#isRetired && !this.#hasEnded;
  }

  /** Whether it accepts an append now. */
  get hasRoom(): boolean {
    return this.isOpen && this.#canWrite && this.#unanswered.size < MAX_IN_FLIGHT;
  }

  /** Resolves when it has room, or never will. For one caller at a time. */
  async room(): Promise<void> {
    while (this.isOpen && !this.hasRoom) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Call only while it has room. */
  send(append: BatchedAppend): void {
    this.#unanswered.set(append.id, append);
    this.#awaited += 1;
    append.sent(this);
    this.#canWrite = this.#call.write(append.request);
  }

  /** Ignores the response to an append. The stream may be stuck, so it gets no more appends. */
  abandon(append: BatchedAppend): void {
    if (!this.#unanswered.has(append.id)) return;
    this.#unanswered.set(append.id, null);
    this.#awaited -= 1;
    this.retire();
  }

  /** Accepts no more appends, and ends when nobody waits for a response. */
  retire(): void {
    this.#isRetired = true;
    this.#endIfUnneeded();
    this.#wake();
  }

  #receive(answer: streams.BatchAppendResp): void {
    const id = answer.getCorrelationId()?.getString() ?? '';
    const append = this.#unanswered.get(id);
    if (append === undefined) return;
    this.#unanswered.delete(id);
    this.#wasOfUse = true;
    if (append !== null) {
      this.#awaited -= 1;
      this.#settle(append, answer);
    }
    this.#endIfUnneeded();
    this.#wake();
  }

  #settle(append: BatchedAppend, answer: streams.BatchAppendResp): void {
    let result: Answer;
    try {
      result = readBatchAnswer(answer, append.stream);
    } catch (error) {
      append.fail(error);
      if (error instanceof NotWrittenError) this.#owner.notTaken(this.channel);
      return;
    }
    append.succeed(result);
  }

  /** A server does not always end a call after its requests have ended, so the call is cancelled. */
  #endIfUnneeded(): void {
    if (this.#isRetired && this.#awaited === 0) this.#call.cancel();
  }

  #end(error: Error): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const reason = this.#reasonFor(convertToCommandError(error));
    for (const append of this.#unanswered.values()) append?.fail(reason);
    this.#unanswered.clear();
    // Otherwise the client would wait for the end of the requests.
    this.#call.end();
    if (!this.#isRetired) this.#owner.ended(this.channel, error, this.#wasOfUse);
    this.#wake();
  }

  /**
   * The error for unanswered appends at the end of the stream. Usually the outcome is unknown, as each may have been
   * written. If the server rejected the whole call, none was written. "Not the leader" concerns one append, but does
   * not say which.
   */
  #reasonFor(error: Error): Error {
    const isRefused = !this.#wasOfUse && isRefusedCall(error);
    const isOfOneAppend = error instanceof NotLeaderError && this.#unanswered.size === 1;
    if (isRefused || isOfOneAppend) return error;
    return new Error(`the stream of appends ended: ${describeError(error)}`, { cause: error });
  }
}
