import { fromIso } from '../../domain/clock.ts';
import { EventStoreError, type Position, type RecordedEvent } from '../../domain/event-store.ts';
import { errorMessage } from '../error-message.ts';
import type { GenerationWriter } from '../generations/generation-writer.ts';
import { ReadModelError } from '../read-model.ts';
import { BackOff } from './back-off.ts';
import { traceBatch } from './tracing.ts';
import { Inbox } from './inbox.ts';
import type { ViewOptions } from './view-options.ts';

type FollowerOptions = Pick<
  ViewOptions,
  'store' | 'followed' | 'clock' | 'telemetry' | 'batchSize' | 'gatherMs'
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

/** Keeps one generation of a view level with the log. Errors are retried indefinitely, from where the documents are. */
export class Follower {
  readonly writer: GenerationWriter;
  readonly #options: FollowerOptions;
  readonly #listener: FollowerListener;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  #state: 'opening' | 'following' | 'waiting' | 'newer_schema' = 'opening';
  #detail: string | null = null;
  /** Whether the documents include everything that was in the log at the last check. */
  #isLevel = false;
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

  get isLevel(): boolean {
    return this.#isLevel;
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
    const backOff = new BackOff(this.#options.clock);
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
        await this.writer.close();
        this.#listener.onUnwanted();
        return;
      } catch (error) {
        this.#fail(error);
        await backOff.wait(signal);
      }
    }
    await this.#end();
  }

  async #follow(signal: AbortSignal, backOff: BackOff): Promise<void> {
    const { store, followed, clock } = this.#options;
    const left = new AbortController();
    const leave = (): void => left.abort();
    signal.addEventListener('abort', leave);
    if (signal.aborted) leave();
    const { passed: after, projection } = this.writer;
    // Documents of an older shape may differ.
    const isOlder = projection.streams.some((prefix) => !followed.includes(prefix));
    const prefixes = isOlder ? [...followed, ...projection.streams] : followed;
    const messages = store.subscribe({ after, prefixes, signal: left.signal });
    const inbox = new Inbox(messages, clock);
    try {
      await this.#takeAll(inbox, backOff, signal);
    } finally {
      signal.removeEventListener('abort', leave);
      this.#isLevel = false;
      leave();
      await inbox.end();
    }
  }

  /** Applies events until the subscription ends or the generation is no longer needed. */
  async #takeAll(inbox: Inbox, backOff: BackOff, signal: AbortSignal): Promise<void> {
    const { writer } = this;
    const { clock } = this.#options;
    for (;;) {
      const patience = this.#flushBy === null ? RECHECK_MS : this.#flushBy - clock.steady();
      const batch = await inbox.next(patience);
      if (batch === 'ended') {
        if (signal.aborted) return;
        throw new Error('the subscription to the log has ended');
      }
      if (batch === 'quiet') {
        if (this.#flushBy !== null) await this.#flush();
        // If there is nothing to write, it can wait for an unavailable store.
        else if (!(await this.#listener.isWanted().catch(() => true))) return;
      } else {
        this.#isLevel = false;
        const taken = await this.#take(batch.events, batch.upTo);
        this.#isLevel = batch.isLevel;
        if (this.#flushBy !== null && this.#flushBy <= clock.steady()) await this.#flush();
        await this.#gather(inbox, batch.events, taken);
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

  /**
   * Under load, waits so that more events are applied together.
   * @param taken how many of the last events were this view's
   */
  async #gather(inbox: Inbox, events: readonly RecordedEvent[], taken: number): Promise<void> {
    const { clock, batchSize, gatherMs } = this.#options;
    const rest = Math.min(gatherMs, taken * GATHER_MS_PER_EVENT);
    if (rest < 1) return;
    const last = events.at(-1)?.metadata.occurredAt;
    const age = last === undefined ? 0 : clock.now() - fromIso(last);
    const isBehind = rest === gatherMs && age > BEHIND_MS;
    const patience = isBehind ? rest * GATHER_FACTOR_WHEN_BEHIND : rest;
    await inbox.gather({ events: batchSize, patience, quiet: QUIET_MS });
  }

  #take(events: readonly RecordedEvent[], upTo: Position): Promise<number> {
    const { traces } = this.#options.telemetry;
    const take = (): Promise<number> => this.writer.take(events, upTo);
    return traces === undefined ? take() : traceBatch(traces, this.writer.projection, events, take);
  }

  async #flush(): Promise<void> {
    await this.writer.flush();
    this.#flushBy = null;
  }

  get #failure(): string {
    return `could not update the view ${this.writer.projection.name}; retrying`;
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
