import type { Request } from 'express';
import { toIso, type Clock } from '../../../domain/clock.ts';
import type { EventStore, Position, RecordedEvent } from '../../../domain/event-store.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { stringifyExactly } from '../../../domain/exact-numbers.ts';
import { newId } from '../../../domain/ids.ts';
import { isTopic } from '../../../domain/schedule/topic-pattern.ts';
import { MAX_PUBLISHED_BYTES, streamIdOf } from '../../../domain/topics/topic.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { ExtensionError, badInput, type StreamAccess, type StreamEntry } from '../../contract.ts';
import { checkActing } from './acting.ts';
import { refuseLost } from './lost-numbers.ts';
import { needed } from '../context.ts';
import type { Extension } from '../extension.ts';
import type { AgentPort, RequestOrigin } from '../ports.ts';
import { LedRequest } from '../routes/led-request.ts';
import { StreamFollower } from './stream-follower.ts';

/** Streams whose names do not begin with their extension's id, as the interface names them. */
const prefixes: Readonly<Record<string, string>> = { events_demo: 'demo-' };

/** An entry to be. */
interface Appended {
  /** Of the stream, in the log. */
  readonly name: string;
  /** Of the stream, as the extension has it. */
  readonly stream: string;
  readonly data: unknown;
  /** The agent's id. */
  readonly actor: string;
  /** Of the request that it is appended for; the extension acts by itself where there is none. */
  readonly origin: RequestOrigin | undefined;
}

/** Before following is begun again that ended by a fault. Milliseconds. */
const AGAIN = 1_000;

/**
 * The streams that extensions have of their own, for all extensions of a process. The log is followed once, however
 * many follow a stream, and only while somebody does.
 */
export class OwnStreams {
  readonly #store: EventStore;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  readonly #agents: Pick<AgentPort, 'idOf'>;
  readonly #followers = new Map<string, Set<StreamFollower>>();
  readonly #end = new AbortController();
  #following: Promise<void> | null = null;
  #begun: Promise<Position> | null = null;

  constructor(options: {
    readonly store: EventStore;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
    readonly agents: Pick<AgentPort, 'idOf'>;
  }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#telemetry = options.telemetry;
    this.#agents = options.agents;
  }

  /** @param originOf of a request that was led to the extension */
  accessOf(
    extension: Extension,
    originOf: (request: Request) => RequestOrigin | undefined,
  ): StreamAccess {
    // With a hyphen in the id, the stream of one could be that of another: a-b's c is not a's b-c.
    const prefix = prefixes[extension.id] ?? `ext_${extension.id.replaceAll('-', '.')}-`;
    const named = (stream: string): string => {
      if (typeof stream === 'string' && isTopic(stream)) return prefix + stream;
      throw badInput('stream', 'must have 1 to 200 characters of A–Z a–z 0–9 _ . : / -');
    };
    return Object.freeze({
      append: async (stream, data, source, { onBehalfOf } = {}) => {
        needed(extension, 'EVENTS_PUB');
        await checkActing(extension, source, this.#agents);
        const origin = onBehalfOf === undefined ? undefined : originOf(onBehalfOf);
        // The built-in extensions append bodies of requests, whose numbers were checked as they were written.
        if (extension.source !== 'builtin') refuseLost('data', stringifyExactly(data).lost);
        const appended = { name: named(stream), stream, data, actor: source, origin };
        const { entry, position } = await this.#append(appended);
        if (onBehalfOf !== undefined) LedRequest.of(onBehalfOf)?.committed(position);
        return entry;
      },
      follow: async (stream, { after, signal }) => {
        needed(extension, 'EVENTS_SUB');
        return this.#follow(named(stream), stream, after, signal);
      },
    } satisfies StreamAccess);
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.#following;
  }

  async #append({ name, stream, data, actor, origin }: Appended): Promise<{
    readonly entry: StreamEntry;
    readonly position: Position;
  }> {
    const text: unknown = JSON.stringify(data);
    if (typeof text !== 'string') throw badInput('data', 'must be JSON');
    if (Buffer.byteLength(text) > MAX_PUBLISHED_BYTES) {
      const details = { limit: MAX_PUBLISHED_BYTES };
      throw new ExtensionError('payload_too_large', 'the entry is too large', details);
    }
    const now = this.#clock.now();
    const context = {
      actor,
      ...(origin ?? { source: 'extension', correlationId: newId(now) }),
      commandId: origin?.commandId ?? newId(now),
      now,
    };
    const event = { type: 'StreamEntryAdded', data: { data } } as const;
    const events = toNewEvents(name, [event], context);
    const { revision, position } = await this.#store.append(name, events, 'any');
    const at = toIso(now);
    return { entry: { id: streamIdOf(at, revision), stream, data, at }, position };
  }

  async #follow(
    name: string,
    stream: string,
    after: string | undefined,
    signal: AbortSignal,
  ): Promise<AsyncIterable<StreamEntry>> {
    // First the log is followed from some place on, then the stream is read: nothing falls in between.
    this.#begun ??= this.#begin();
    await this.#begun;
    const part = { direction: 'backwards', limit: 1, faulty: true } as const;
    const [last] = await this.#store.readStream(name, part);
    const end = last === undefined ? 0 : last.revision + 1;
    const next = after === undefined ? end : after === 'start' ? 0 : revisionOf(after) + 1;
    if (next > end) throw badInput('after', "lies beyond the stream's end");
    const ended = AbortSignal.any([signal, this.#end.signal]);
    const follower = new StreamFollower({ store: this.#store, name, stream, next, signal: ended });
    const others = this.#followers.get(name) ?? new Set();
    this.#followers.set(name, others.add(follower));
    const leave = (): void => {
      others.delete(follower);
      if (others.size === 0) this.#followers.delete(name);
    };
    if (ended.aborted) leave();
    else ended.addEventListener('abort', leave, { once: true });
    return follower;
  }

  async #begin(): Promise<Position> {
    try {
      const head = await this.#store.head();
      this.#following = this.#run(head);
      return head;
    } catch (error) {
      this.#begun = null;
      throw error;
    }
  }

  async #run(head: Position): Promise<void> {
    const { signal } = this.#end;
    let after = head;
    while (!signal.aborted) {
      try {
        const options = { after, prefixes: [...Object.values(prefixes), 'ext_'], signal };
        for await (const message of this.#store.subscribe(options)) {
          if (message.kind === 'events') this.#hand(message.events);
          after =
            message.kind === 'events'
              ? (message.events.at(-1)?.position ?? after)
              : message.position;
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#telemetry.log.warn('following the streams of extensions failed; going on', { error });
        await this.#clock.sleep(AGAIN, signal).catch(() => {});
      }
    }
  }

  #hand(events: readonly RecordedEvent[]): void {
    const byStream = new Map<string, RecordedEvent[]>();
    for (const event of events) {
      if (!this.#followers.has(event.stream)) continue;
      byStream.set(event.stream, [...(byStream.get(event.stream) ?? []), event]);
    }
    for (const [stream, some] of byStream) {
      for (const follower of this.#followers.get(stream) ?? []) follower.offer(some);
    }
  }
}

/** @throws ExtensionError `bad_request` */
function revisionOf(id: string): number {
  const text = /^\d{1,15}-(\d{1,15})$/.exec(id)?.[1];
  if (text === undefined) throw badInput('after', 'is no id of an entry');
  return Number(text);
}
