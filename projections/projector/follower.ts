import { fromIso } from '../../domain/clock.ts';
import { EventStoreError, type Position, type RecordedEvent } from '../../domain/event-store.ts';
import { errorMessage } from '../error-message.ts';
import type { GenerationWriter } from '../generations/generation-writer.ts';
import { ReadModelError } from '../read-model.ts';
import { BackOff } from './back-off.ts';
import { traceBatch } from './tracing.ts';
import type { ViewOptions } from './view-options.ts';

type FollowerOptions = Pick<
  ViewOptions,
  'feed' | 'store' | 'clock' | 'telemetry' | 'batchSize' | 'gatherMs'
>;

export interface FollowerListener {
  /** Whether the generation is still to be fed. A damaged one is discarded by its store. */
  isWanted(): Promise<boolean>;
  /** Called once, when the follower ended because its generation is no longer wanted. */
  onUnwanted(): void;
}

/** Milliseconds by which a checkpoint may be late when only other views' events moved it; saves writes. */
const FLUSH_MS = 25;

/**
 * Milliseconds of gathering per event of the previous batch. A single event reaches the view at once; under load a run's
 * events come in one batch and its document is written once.
 */
const GATHER_MS_PER_EVENT = 0.2;

/**
 * A view whose events are older than this, in milliseconds, while it gathers for the full time, has fallen behind. It
 * then gathers longer, until a whole batch is there: fewer writes per document bring it back.
 */
const BEHIND_MS = 200;
const GATHER_FACTOR_WHEN_BEHIND = 2;
/** Gathering ends after so many milliseconds without an event: under load, commits are closer together. */
const QUIET_MS = 10;

/**
 * Milliseconds without events after which a follower checks whether its generation is still wanted. Any process that
 * reads a damaged file discards it, and an idle follower would not notice otherwise.
 */
const RECHECK_MS = 5_000;

/**
 * Keeps one generation of a view level with the log: from the shared feed, or from a subscription of its own until it
 * has reached the feed's window. Errors are retried indefinitely, from where the documents are.
 */
export class Follower {
  readonly writer: GenerationWriter;
  readonly #options: FollowerOptions;
  readonly #listener: FollowerListener;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  #state: 'opening' | 'following' | 'waiting' | 'newer_schema' = 'opening';
  #detail: string | null = null;
  /** Deadline for storing the checkpoint, by the clock's `steady`; null while it is stored. */
  #flushBy: number | null = null;

  constructor(options: FollowerOptions, writer: GenerationWriter, listener: FollowerListener) {
    this.#options = options;
    this.writer = writer;
    this.#listener = listener;
    this.#ended = this.#run(this.#stop.signal);
  }

  get state(): 'opening' | 'following' | 'waiting' | 'newer_schema' {
    return this.#state;
  }

  /** The last error; null while it follows. */
  get detail(): string | null {
    return this.#detail;
  }

  /** Resolves when the current batch is done, the checkpoint is stored and the generation is closed. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { feed, clock } = this.#options;
    const backOff = new BackOff(clock);
    while (!signal.aborted) {
      try {
        await this.writer.open(false);
        if (await this.#listener.isWanted()) {
          this.#flushBy = null;
          this.#state = 'following';
          this.#detail = null;
          await this.#follow(signal, backOff);
          if (signal.aborted) break;
        }
        feed.leave(this);
        await this.writer.close();
        this.#listener.onUnwanted();
        return;
      } catch (error) {
        feed.leave(this);
        this.#fail(error);
        await backOff.wait(signal);
      }
    }
    feed.leave(this);
    await this.#end();
  }

  async #follow(signal: AbortSignal, backOff: BackOff): Promise<void> {
    const { writer } = this;
    const { feed, clock, batchSize } = this.#options;
    for (;;) {
      const patience = this.#flushBy === null ? RECHECK_MS : this.#flushBy - clock.steady();
      const page = await feed.next(this, writer.passed, { limit: batchSize, signal, patience });
      switch (page.kind) {
        case 'stopped':
          return;
        case 'behind':
          await this.#reachFeed(signal);
          break;
        case 'quiet':
          if (this.#flushBy !== null) await this.#flush();
          // With nothing to write, an unavailable store can be waited for.
          else if (!(await this.#listener.isWanted().catch(() => true))) return;
          break;
        case 'events': {
          const taken = await this.#take(page.events, page.upTo);
          if (this.#flushBy !== null && this.#flushBy <= clock.steady()) await this.#flush();
          await this.#gather(page.events, taken, signal);
          break;
        }
      }
      if (writer.isUnwritten) {
        this.#flushBy ??= clock.steady() + FLUSH_MS;
      } else {
        this.#flushBy = null;
        // Only after a write: a successful read does not mean that writing works.
        backOff.reset();
        this.#options.telemetry.failures.worked(this.#failure);
      }
    }
  }

  /** Under load, waits so that the next events are taken together. @param taken how many were this view's */
  async #gather(
    events: readonly RecordedEvent[],
    taken: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { feed, clock, batchSize, gatherMs } = this.#options;
    const rest = Math.min(gatherMs, taken * GATHER_MS_PER_EVENT);
    if (rest < 1) return;
    const last = events.at(-1)?.metadata.occurredAt;
    const age = last === undefined ? 0 : clock.now() - fromIso(last);
    const isBehind = rest === gatherMs && age > BEHIND_MS;
    const patience = isBehind ? rest * GATHER_FACTOR_WHEN_BEHIND : rest;
    const options = { events: batchSize, patience, quiet: QUIET_MS, signal };
    await feed.gather(this, this.writer.passed, options);
  }

  #take(events: readonly RecordedEvent[], upTo: Position): Promise<number> {
    const { traces } = this.#options.telemetry;
    const take = (): Promise<number> => this.writer.take(events, upTo);
    return traces === undefined ? take() : traceBatch(traces, this.writer.projection, events, take);
  }

  /** Reads by itself until it is within the feed's window. */
  async #reachFeed(signal: AbortSignal): Promise<void> {
    const { writer } = this;
    const { feed, store } = this.#options;
    feed.leave(this);
    const done = new AbortController();
    const options = {
      after: writer.passed,
      prefixes: writer.projection.streams,
      signal: AbortSignal.any([signal, done.signal]),
    };
    try {
      for await (const message of store.subscribe(options)) {
        if (message.kind === 'caught-up') await writer.take([], message.position);
        else await writer.take(message.events, message.events.at(-1)?.position ?? writer.passed);
        if (feed.holds(writer.passed)) return;
      }
    } finally {
      done.abort();
    }
  }

  async #flush(): Promise<void> {
    await this.writer.flush();
    this.#flushBy = null;
  }

  get #failure(): string {
    return `could not feed the view ${this.writer.projection.name}; retrying`;
  }

  #fail(error: unknown): void {
    const { telemetry } = this.#options;
    const projection = this.writer.projection.name;
    this.#detail = errorMessage(error);
    const newer = error instanceof EventStoreError && error.code === 'NEWER_SCHEMA';
    this.#state = newer ? 'newer_schema' : 'waiting';
    const fields = { projection, error: this.#detail };
    telemetry.count('projection_failures_total', { projection });
    if (error instanceof ReadModelError && error.code === 'FENCED') {
      telemetry.log.info('another writer moved the view; reopening it', fields);
    } else {
      telemetry.failures.failed(this.#failure, error);
    }
  }

  /** Does not reject. Nothing is lost by a failure here: unwritten events come again after the older checkpoint. */
  async #end(): Promise<void> {
    try {
      if (this.#state === 'following') await this.writer.flush();
    } catch (error) {
      this.#logEnd('could not store the last checkpoint of a view', error);
    }
    try {
      await this.writer.close();
    } catch (error) {
      this.#logEnd('could not close a view in order', error);
    }
  }

  #logEnd(what: string, error: unknown): void {
    const fields = { projection: this.writer.projection.name, error: errorMessage(error) };
    this.#options.telemetry.log.info(what, fields);
  }
}
