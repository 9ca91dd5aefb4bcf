import { fromIso, type Clock } from '../../domain/clock.ts';
import {
  EventStoreError,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { BackOff } from './back-off.ts';
import type { GenerationFeeder } from '../generations/generation-feeder.ts';
import { ReadModelError } from '../read-model.ts';
import type { SharedFeed } from './shared-feed.ts';
import { traceBatch } from './tracing.ts';

export interface FollowingOptions {
  readonly feeder: GenerationFeeder;
  readonly feed: SharedFeed;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Events to a batch. */
  readonly batchSize: number;
  /** Milliseconds that events are gathered at most while many come; 0: none. */
  readonly gatherMs: number;
  /** Whether the generation is still the one to be fed. A damaged one is thrown away by its store. */
  readonly isWanted: () => Promise<boolean>;
  /** Told once, when it ended by itself because the generation was not wanted any more. */
  readonly onUnwanted: () => void;
}

/** Other views' events move the checkpoint too; it is kept this much later, so that they cost few writes. */
const FLUSH_MS = 25;

/**
 * Milliseconds of gathering to each event of the batch before: so one that comes alone is in the view at once, and
 * under load a run's events come into one batch, whose document is then written once.
 */
const GATHER_PER_EVENT = 0.2;

/**
 * Events that are older than this, in milliseconds, and as many as are gathered for all the time that there is: the view
 * has fallen behind. It then waits longer, until a whole batch is there, as what it does not write two and three times
 * is what brings it back: a batch of what was just read has the beginnings and the ends of different runs.
 */
const FALLEN_BEHIND = 200;
/** How much longer. */
const LONGER_WHEN_BEHIND = 2;
/** Under load commits are a few milliseconds apart: after so many without an event, none is gathered any more. */
const QUIET_MS = 10;

/**
 * Milliseconds without events after which it looks whether the generation is still the one to be fed. Whoever reads a
 * damaged file throws it away, in whatever process; with nothing to write, nothing else here would come upon that.
 */
const LOOK_MS = 5_000;

/**
 * Keeps one generation of a view level with the log: from the shared feed, or by a subscription of its own
 * until it has come to where the feed is. What goes wrong is tried again, for ever, from where the documents
 * are.
 */
export class Following {
  readonly #options: FollowingOptions;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  #state: 'opening' | 'following' | 'waiting' | 'newer_schema' = 'opening';
  #detail: string | null = null;
  /** When the checkpoint has to be kept at last, by the clock's `steady`; null while it is. */
  #flushBy: number | null = null;

  /** Begins at once. */
  constructor(options: FollowingOptions) {
    this.#options = options;
    this.#ended = this.#run(this.#stop.signal);
  }

  get feeder(): GenerationFeeder {
    return this.#options.feeder;
  }

  get state(): 'opening' | 'following' | 'waiting' | 'newer_schema' {
    return this.#state;
  }

  /** What it waits for; null while it follows. */
  get detail(): string | null {
    return this.#detail;
  }

  /** Resolves when the batch at hand is done, the checkpoint kept and the generation closed. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { feeder, feed, clock } = this.#options;
    const backOff = new BackOff(clock);
    while (!signal.aborted) {
      try {
        await feeder.open(false);
        if (await this.#options.isWanted()) {
          this.#flushBy = null;
          this.#state = 'following';
          this.#detail = null;
          await this.#follow(signal, backOff);
          if (signal.aborted) break;
        }
        feed.leave(this);
        await feeder.close();
        this.#options.onUnwanted();
        return;
      } catch (error) {
        feed.leave(this);
        this.#failed(error);
        await backOff.wait(signal);
      }
    }
    feed.leave(this);
    await this.#end();
  }

  /** Returns when it is stopped, or the generation is not wanted any more. */
  async #follow(signal: AbortSignal, backOff: BackOff): Promise<void> {
    const { feeder, feed, clock, batchSize } = this.#options;
    for (;;) {
      const patience = this.#flushBy === null ? LOOK_MS : this.#flushBy - clock.steady();
      const page = await feed.next(this, feeder.passed, { limit: batchSize, signal, patience });
      switch (page.kind) {
        case 'stopped':
          return;
        case 'behind':
          await this.#comeToTheFeed(signal);
          break;
        case 'quiet':
          if (this.#flushBy !== null) await this.#flush();
          else if (!(await this.#isStillWanted())) return;
          break;
        case 'events': {
          const taken = await this.#take(page.events, page.upTo);
          if (this.#flushBy !== null && this.#flushBy <= clock.steady()) await this.#flush();
          await this.#gather(page.events, taken, signal);
          break;
        }
      }
      if (feeder.isUnwritten) {
        this.#flushBy ??= clock.steady() + FLUSH_MS;
      } else {
        this.#flushBy = null;
        // Only now: to have read something says nothing of whether it can be written.
        backOff.reset();
      }
    }
  }

  /** After a batch, while many come: what comes next is taken together. @param taken how many were this view's */
  async #gather(
    events: readonly RecordedEvent[],
    taken: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { feeder, feed, clock, batchSize, gatherMs } = this.#options;
    const rest = Math.min(gatherMs, taken * GATHER_PER_EVENT);
    if (rest < 1) return;
    const last = events.at(-1)?.metadata.occurredAt;
    const age = last === undefined ? 0 : clock.now() - fromIso(last);
    const isBehind = rest === gatherMs && age > FALLEN_BEHIND;
    const patience = isBehind ? rest * LONGER_WHEN_BEHIND : rest;
    const options = { events: batchSize, patience, quiet: QUIET_MS, signal };
    await feed.gather(this, feeder.passed, options);
  }

  #take(events: readonly RecordedEvent[], upTo: Position): Promise<number> {
    const { feeder, telemetry } = this.#options;
    const { traces } = telemetry;
    if (traces === undefined) return feeder.take(events, upTo);
    return traceBatch(traces, feeder.projection, events, () => feeder.take(events, upTo));
  }

  async #comeToTheFeed(signal: AbortSignal): Promise<void> {
    const { feeder, feed, store } = this.#options;
    feed.leave(this);
    const { streams: prefixes } = feeder.projection;
    const own = new AbortController();
    const options = {
      after: feeder.passed,
      prefixes,
      signal: AbortSignal.any([signal, own.signal]),
    };
    try {
      for await (const message of store.subscribe(options)) {
        if (message.kind === 'caught-up') await feeder.take([], message.position);
        else await feeder.take(message.events, message.events.at(-1)?.position ?? feeder.passed);
        if (feed.holds(feeder.passed)) return;
      }
    } finally {
      own.abort();
    }
  }

  /** True, too, where nobody answers: who has nothing to write can wait for that. */
  #isStillWanted(): Promise<boolean> {
    return this.#options.isWanted().catch(() => true);
  }

  async #flush(): Promise<void> {
    await this.#options.feeder.flush();
    this.#flushBy = null;
  }

  #failed(error: unknown): void {
    const { feeder, telemetry } = this.#options;
    this.#detail = error instanceof Error ? error.message : String(error);
    const newer = error instanceof EventStoreError && error.code === 'NEWER_SCHEMA';
    this.#state = newer ? 'newer_schema' : 'waiting';
    const fields = { projection: feeder.projection.name, error: this.#detail };
    telemetry.count('projection_failures_total', { projection: feeder.projection.name });
    if (error instanceof ReadModelError && error.code === 'FENCED') {
      telemetry.log.info('another writer came between; the view is opened again', fields);
    } else {
      telemetry.log.warn('a view could not be fed; it is tried again', fields);
    }
  }

  /** Does not reject: whoever stops it goes on, and would else wait for what is over already. */
  async #end(): Promise<void> {
    const { feeder } = this.#options;
    try {
      if (this.#state === 'following') await feeder.flush();
    } catch (error) {
      // Nothing is lost: the checkpoint is older, and the same events come again.
      this.#sayUnended('the last checkpoint of a view could not be kept', error);
    }
    try {
      await feeder.close();
    } catch (error) {
      // What was written stays written, and what was not comes again.
      this.#sayUnended('a view could not be closed in order', error);
    }
  }

  #sayUnended(what: string, error: unknown): void {
    const { feeder, telemetry } = this.#options;
    telemetry.log.info(what, {
      projection: feeder.projection.name,
      error: error instanceof Error ? error.message : String(error),
    });
  }
}
