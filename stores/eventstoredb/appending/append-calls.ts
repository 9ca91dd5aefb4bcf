import type { AppendResult as Answer } from '@eventstore/db-client';
import { randomUUID } from 'node:crypto';
import { pause, pauseAfter } from '../../waiting.ts';
import {
  NotWrittenError,
  describeError,
  isRefusedCall,
  isUnimplemented,
} from '../connecting/client-errors.ts';
import type { Connection } from '../connecting/connection.ts';
import type { LogParts } from '../log-parts.ts';
import { encodeBatchAppend, type Append } from './batch-request.ts';
import { BatchStream } from './batch-stream.ts';
import { BatchedAppend } from './batched-append.ts';
import { classicAppend } from './classic-append.ts';

/**
 * The largest request on the shared stream, in bytes. Small appends would wait behind a larger one, and a server may
 * end the stream because of it. By default, servers accept no larger append anyway.
 */
const MAX_BATCHED_BYTES = 1024 * 1024;

/**
 * The calls that append. All appends share one `BatchAppend` stream, which costs a fraction of a call per append and
 * keeps their order. Each append has its own deadline and outcome. If a server lacks `BatchAppend`, each append is a
 * call.
 */
export class AppendCalls {
  readonly #log: Pick<LogParts, 'connection' | 'identity' | 'timings' | 'telemetry'>;
  /** Appends that were not sent yet, in order. */
  readonly #queue: BatchedAppend[] = [];
  /** Channels whose server lacks `BatchAppend`. */
  readonly #lacking = new WeakSet<object>();
  readonly #closing = new AbortController();
  #stream: BatchStream | undefined;
  #isSending = false;
  /** How many streams in a row ended without a response, and when the next may be opened. */
  #failures = 0;
  #openAt = 0;

  constructor(log: Pick<LogParts, 'connection' | 'identity' | 'timings' | 'telemetry'>) {
    this.#log = log;
  }

  /**
   * One attempt at an append.
   * @param deadlineMs milliseconds
   * @throws the client's error; {@link NotWrittenError}; or another error, after which the outcome is unknown
   */
  async append(append: Append, deadlineMs: number): Promise<Answer> {
    const { connection, telemetry } = this.#log;
    const begun = performance.now();
    telemetry.count('eventstore_calls_total', { call: 'append' });
    if (!this.#isLacking(connection.channel)) {
      const id = randomUUID();
      const request = encodeBatchAppend(append, id, deadlineMs);
      if (request.length <= MAX_BATCHED_BYTES) {
        const batched = new BatchedAppend(id, append.stream, request, deadlineMs);
        this.#queue.push(batched);
        void this.#send();
        try {
          return await batched.answer;
        } catch (error) {
          if (!isUnimplemented(error)) throw error;
        }
      }
    }
    return classicAppend(connection, append, deadlineMs - (performance.now() - begun));
  }

  /** Ends the stream. Call it when every append has settled. */
  close(): void {
    this.#closing.abort();
    this.#stream?.retire();
  }

  /** Sends the queued appends. Never rejects. */
  async #send(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      while (this.#queue.length > 0) {
        const stream = this.#usableStream() ?? (await this.#openStream());
        while (stream.hasRoom && this.#queue.length > 0) {
          const append = this.#queue.shift();
          if (append?.isSettled === false) stream.send(append);
        }
        await stream.room();
      }
    } catch (error) {
      this.#failQueued(new NotWrittenError(`not sent: ${describeError(error)}`));
    } finally {
      this.#isSending = false;
    }
  }

  #usableStream(): BatchStream | undefined {
    const stream = this.#stream;
    if (stream?.isOpen !== true) return undefined;
    if (stream.channel === this.#log.connection.channel) return stream;
    stream.retire();
    return undefined;
  }

  async #openStream(): Promise<BatchStream> {
    const wait = this.#openAt - performance.now();
    if (wait > 0) await pause(wait, this.#closing.signal);
    const { connection } = this.#log;
    let opened: BatchStream | undefined;
    await connection.openBatchAppend((call) => {
      opened = new BatchStream(call, connection.channel, {
        notTaken: (channel) => this.#leave(channel),
        ended: (channel, error, wasOfUse) => this.#noteEnd(channel, error, wasOfUse),
      });
    });
    if (opened === undefined) throw new Error('the client opened no stream');
    this.#stream = opened;
    return opened;
  }

  #leave(channel: Connection['channel']): void {
    if (channel !== undefined) void this.#log.connection.leave(channel);
  }

  #noteEnd(channel: Connection['channel'], error: Error, wasOfUse: boolean): void {
    const { identity, timings, telemetry } = this.#log;
    if (!wasOfUse && isUnimplemented(error) && channel !== undefined) {
      this.#lacking.add(channel);
      telemetry.log.info(
        'the EventStoreDB server has no batched appends, so each append is a call',
      );
      this.#failQueued(error);
      return;
    }
    this.#failures = wasOfUse ? 0 : this.#failures + 1;
    const wait = wasOfUse
      ? 0
      : pauseAfter(this.#failures, timings.firstPauseMs, timings.longestPauseMs);
    this.#openAt = performance.now() + wait;
    if (!isRefusedCall(error)) identity.connectionLost();
    telemetry.log.debug('the stream of appends ended', { failure: describeError(error) });
  }

  #isLacking(channel: Connection['channel']): boolean {
    return channel !== undefined && this.#lacking.has(channel);
  }

  #failQueued(error: Error): void {
    for (const append of this.#queue.splice(0)) append.fail(error);
  }
}
