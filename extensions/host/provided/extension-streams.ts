import type { Request } from 'express';
import { toIso } from '../../../domain/clock.ts';
import type { Position, RecordedEvent } from '../../../domain/event-store.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { stringifyExactly } from '../../../domain/exact-numbers.ts';
import { newId } from '../../../domain/ids.ts';
import { DEFAULT_NAMESPACE } from '../../../domain/namespaces/namespace.ts';
import { placedName } from '../../../domain/streams.ts';
import { isTopic } from '../../../domain/schedule/topic-pattern.ts';
import { MAX_PUBLISHED_BYTES, streamIdOf } from '../../../domain/topics/topic.ts';
import { ExtensionError, badInput, type StreamAccess, type StreamEntry } from '../../contract.ts';
import { checkActingAgent } from './served-agents.ts';
import { rejectLostNumbers } from './lost-numbers.ts';
import { requireCapability } from '../context.ts';
import type { Extension } from '../extension.ts';
import type { HostDependencies, RequestOrigin } from '../ports.ts';
import { RequestContext } from '../routes/request-context.ts';
import { StreamFollower } from './stream-follower.ts';

/** The message that reports a failure. */
const FAILURE = 'following extension streams failed; retrying';

/** Stream prefixes of built-in extensions that differ from the default. */
const prefixes: Readonly<Record<string, string>> = { events_demo: 'demo-' };

type StreamDependencies = Pick<HostDependencies, 'store' | 'clock' | 'telemetry' | 'agents'>;

/** An entry to append. */
interface NewEntry {
  /** Name of the stream in the log. */
  readonly name: string;
  /** Of the agent. */
  readonly namespace: string;
  /** Name of the stream for the extension. */
  readonly stream: string;
  readonly data: unknown;
  /** Id of the agent. */
  readonly actor: string;
  /** Origin of its request; undefined if the extension acts on its own. */
  readonly origin: RequestOrigin | undefined;
}

/** Pause before following is resumed after an error, in milliseconds. */
const RETRY_PAUSE_MS = 1_000;

/**
 * The streams of all extensions of a process. One subscription to the log serves all followers. It starts with the
 * first follower.
 */
export class ExtensionStreams {
  readonly #dependencies: StreamDependencies;
  readonly #followers = new Map<string, Set<StreamFollower>>();
  readonly #closing = new AbortController();
  #following: Promise<void> | null = null;
  #startPosition: Promise<Position> | null = null;

  constructor(dependencies: StreamDependencies) {
    this.#dependencies = dependencies;
  }

  /** @param originOf origin of a request that was routed to the extension */
  accessOf(
    extension: Extension,
    originOf: (request: Request) => RequestOrigin | undefined,
  ): StreamAccess {
    const { agents } = this.#dependencies;
    // Hyphens in the id would make stream c of a-b the same as stream b-c of a.
    const prefix = prefixes[extension.id] ?? `ext_${extension.id.replaceAll('-', '.')}-`;
    const logStreamOf = (stream: string, namespace: string): string => {
      const isValid = typeof stream === 'string' && isTopic(stream);
      if (isValid) return prefix + placedName(namespace, stream);
      throw badInput('stream', 'must be 1 to 200 characters of A–Z a–z 0–9 _ . : / -');
    };
    return Object.freeze({
      append: async (stream, data, source, { onBehalfOf } = {}) => {
        requireCapability(extension, 'EVENTS_PUB');
        await checkActingAgent(extension, source, agents);
        const origin = onBehalfOf === undefined ? undefined : originOf(onBehalfOf);
        // Built-in extensions append request bodies whose numbers were already checked.
        if (extension.source !== 'builtin') rejectLostNumbers('data', stringifyExactly(data).lost);
        const namespace = await agents.namespaceOf(source);
        const name = logStreamOf(stream, namespace);
        await agents.requireEntryRoom(namespace, data);
        const added = { name, namespace, stream, data, actor: source, origin };
        const { entry, position } = await this.#append(added);
        if (onBehalfOf !== undefined) RequestContext.of(onBehalfOf)?.setEventPosition(position);
        return entry;
      },
      follow: async (stream, { after, actAs, signal }) => {
        requireCapability(extension, 'EVENTS_SUB');
        if (actAs !== undefined) await checkActingAgent(extension, actAs, agents);
        const namespace = actAs === undefined ? DEFAULT_NAMESPACE : await agents.namespaceOf(actAs);
        const name = logStreamOf(stream, namespace);
        return this.#follow(name, stream, after, signal);
      },
    } satisfies StreamAccess);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#following;
  }

  async #append({ name, namespace, stream, data, actor, origin }: NewEntry): Promise<{
    readonly entry: StreamEntry;
    readonly position: Position;
  }> {
    const json: unknown = JSON.stringify(data);
    if (typeof json !== 'string') throw badInput('data', 'must be JSON');
    if (Buffer.byteLength(json) > MAX_PUBLISHED_BYTES) {
      const details = { limit: MAX_PUBLISHED_BYTES };
      throw new ExtensionError('payload_too_large', 'the entry is too large', details);
    }
    const now = this.#dependencies.clock.now();
    const context = {
      actor,
      namespace,
      ...(origin ?? { source: 'extension', correlationId: newId(now) }),
      commandId: origin?.commandId ?? newId(now),
      now,
    };
    const event = { type: 'StreamEntryAdded', data: { data } } as const;
    const events = toNewEvents(name, [event], context);
    const { revision, position } = await this.#dependencies.store.append(name, events, 'any');
    const at = toIso(now);
    return { entry: { id: streamIdOf(at, revision), stream, data, at }, position };
  }

  async #follow(
    name: string,
    stream: string,
    after: string | undefined,
    signal: AbortSignal,
  ): Promise<AsyncIterable<StreamEntry>> {
    // Following starts before the stream is read, so no entry is missed in between.
    this.#startPosition ??= this.#startFollowing();
    await this.#startPosition;
    const range = { direction: 'backwards', limit: 1, faulty: true } as const;
    const { store } = this.#dependencies;
    const [last] = await store.readStream(name, range);
    const end = last === undefined ? 0 : last.revision + 1;
    const next = after === undefined ? end : after === 'start' ? 0 : revisionOf(after) + 1;
    if (next > end) throw badInput('after', "is beyond the stream's end");
    const ended = AbortSignal.any([signal, this.#closing.signal]);
    const follower = new StreamFollower({ store, name, stream, next, signal: ended });
    const followers = this.#followers.get(name) ?? new Set();
    this.#followers.set(name, followers.add(follower));
    const leave = (): void => {
      followers.delete(follower);
      if (followers.size === 0) this.#followers.delete(name);
    };
    if (ended.aborted) leave();
    else ended.addEventListener('abort', leave, { once: true });
    return follower;
  }

  async #startFollowing(): Promise<Position> {
    try {
      const head = await this.#dependencies.store.head();
      this.#following = this.#run(head);
      return head;
    } catch (error) {
      this.#startPosition = null;
      throw error;
    }
  }

  async #run(head: Position): Promise<void> {
    const { store, clock, telemetry } = this.#dependencies;
    const { signal } = this.#closing;
    let after = head;
    while (!signal.aborted) {
      try {
        const options = { after, prefixes: [...Object.values(prefixes), 'ext_'], signal };
        for await (const message of store.subscribe(options)) {
          telemetry.failures.worked(FAILURE);
          if (message.kind === 'events') {
            this.#distribute(message.events);
            after = message.events.at(-1)?.position ?? after;
          } else after = message.position;
        }
      } catch (error) {
        if (signal.aborted) return;
        telemetry.failures.failed(FAILURE, error);
        await clock.sleep(RETRY_PAUSE_MS, signal).catch(() => {});
      }
    }
  }

  #distribute(events: readonly RecordedEvent[]): void {
    const byStream = new Map<string, RecordedEvent[]>();
    for (const event of events) {
      if (!this.#followers.has(event.stream)) continue;
      byStream.set(event.stream, [...(byStream.get(event.stream) ?? []), event]);
    }
    for (const [stream, streamEvents] of byStream) {
      for (const follower of this.#followers.get(stream) ?? []) follower.offer(streamEvents);
    }
  }
}

/** @throws ExtensionError `bad_request` */
function revisionOf(id: string): number {
  const revision = /^\d{1,15}-(\d{1,15})$/.exec(id)?.[1];
  if (revision === undefined) throw badInput('after', 'must be the id of an entry');
  return Number(revision);
}
