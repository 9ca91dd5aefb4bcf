import { toIso } from '../../domain/clock.ts';
import { load } from '../../domain/handle.ts';
import { reportReplay, replaysFold, type Replay } from '../../domain/operators/replays.ts';
import { streams } from '../../domain/streams.ts';
import { BackOff } from '../projector/back-off.ts';
import { PoisonedFillError } from '../generations/generation-writer.ts';
import { keepRunning } from '../projector/retry-loop.ts';
import type { ProjectorParts, ProjectorTuning } from '../projector/view-options.ts';
import { projectorContext, ViewOrders } from '../projector/view-orders.ts';
import type { Projection } from '../read-model.ts';
import { ReplayFilling } from './replay-filling.ts';
import type { ReplayProgress } from './replay-report.ts';
import { replayable, replayedAs } from './replay-views.ts';

/** The messages that report failures. */
const FAILURE = 'could not build a replay; retrying';
const NOT_REPORTED = 'could not report the progress of a replay; retrying';

export interface ReplayerOptions extends ProjectorParts, Partial<Pick<ProjectorTuning, 'onFill'>> {
  /** Called with the progress of the current replay from time to time. Errors are logged. */
  readonly tell: (progress: ReplayProgress) => Promise<void>;
  /** Milliseconds between two reports; default 500. */
  readonly every?: number;
}

/** Milliseconds between checks for expired replays. */
const CHECK_INTERVAL_MS = 60_000;

/**
 * Builds views as of a position and discards those that are no longer requested. It compares the orders in the stream
 * `replays` with the existing views, one step at a time. The leading projector carries out each order once, and after a
 * crash the next leader continues.
 */
export class Replayer {
  readonly #options: ReplayerOptions;
  /** Aborted when the orders have changed. */
  #changed = new AbortController();

  constructor(options: ReplayerOptions) {
    this.#options = options;
  }

  /** Runs until the signal is aborted. Does not reject: failures are retried. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, telemetry } = this.#options;
    const following = this.#followOrders(signal);
    const backOff = new BackOff(clock);
    while (!signal.aborted) {
      this.#changed = new AbortController();
      try {
        const next = await this.#next();
        if (next === null) telemetry.failures.worked(FAILURE);
        if (next === null) await this.#notified(signal);
        else await this.#carryOut(next, signal);
        backOff.reset();
        telemetry.failures.worked(FAILURE);
      } catch (error) {
        if (signal.aborted) break;
        telemetry.failures.failed(FAILURE, error);
        await backOff.wait(signal);
      }
    }
    await following;
  }

  /** The next replay with work to do. Discarding comes first, to free space. */
  async #next(): Promise<Replay | null> {
    const { state } = await load(this.#options.store, streams.replays(), replaysFold);
    const all = [...state.known.values()];
    const ended = all.find((replay) => this.#endOf(replay) !== null);
    if (ended !== undefined) return ended;
    for (const replay of all) {
      if (replay.error !== null) continue;
      if (replay.documents === null || (await this.#missing(replay)) !== null) return replay;
    }
    return null;
  }

  /** Why a replay is to be discarded; null if it is not. */
  #endOf({ dropping, keptUntil }: Replay): 'asked' | 'expired' | null {
    if (dropping) return 'asked';
    return keptUntil <= this.#options.clock.now() ? 'expired' : null;
  }

  async #carryOut(replay: Replay, signal: AbortSignal): Promise<void> {
    const { store, clock, telemetry } = this.#options;
    const end = this.#endOf(replay);
    const { name } = replay;
    if (end !== null) {
      for (const projection of replayable) await this.#discard(projection, name);
      await reportReplay(store, replay, { dropped: end }, projectorContext(clock));
      telemetry.log.info('discarded a replay', { replay: name, cause: end });
      return;
    }
    try {
      const documents = await this.#build(replay, signal);
      if (documents === null) return;
      if (replay.documents === null) {
        await reportReplay(store, replay, { documents }, projectorContext(clock));
      }
      telemetry.log.info('a replay is readable', { replay: name, documents });
    } catch (error) {
      if (!(error instanceof PoisonedFillError)) throw error;
      await reportReplay(store, replay, { error: error.message }, projectorContext(clock));
      telemetry.log.error('could not build a replay', { replay: name, error: error.message });
    }
  }

  /** The first of its views that cannot be read; null if all can. */
  async #missing({ name, version, views }: Replay): Promise<Projection | null> {
    for (const projection of replayable) {
      if (!views.includes(projection.name)) continue;
      const view = replayedAs(projection, name);
      if ((await this.#options.readModel.liveGeneration(view)) !== version) return projection;
    }
    return null;
  }

  /** Builds missing views. @returns the number of documents per view; null if it was interrupted */
  async #build(replay: Replay, signal: AbortSignal): Promise<Record<string, number> | null> {
    const { store, readModel, every = 500, clock } = this.#options;
    const { name, version, until, rate, views } = replay;
    const counts: Record<string, number> = {};
    const stop = AbortSignal.any([signal, this.#changed.signal]);
    for (const [index, projection] of replayable
      .filter((each) => views.includes(each.name))
      .entries()) {
      const view = replayedAs(projection, name);
      if ((await readModel.liveGeneration(view)) !== version) {
        const { skipped } = await new ViewOrders({ store, clock, projection }).load();
        const filling = new ReplayFilling({
          ...this.#options,
          projection: view,
          generation: version,
          until,
          rate,
          skipped,
        });
        const done = new AbortController();
        const reporting = this.#reportRegularly(done.signal, every, () => ({
          at: toIso(clock.now()),
          name,
          version,
          view: projection.name,
          handled: filling.handled,
          progress: (index + filling.progress) / views.length,
          events_per_second: filling.rate,
        }));
        try {
          if (!(await filling.run(stop))) return null;
        } finally {
          done.abort();
          await reporting;
        }
        await readModel.switchTo(view, version);
      }
      counts[projection.name] = await readModel.count(view, []);
    }
    return counts;
  }

  async #reportRegularly(
    signal: AbortSignal,
    every: number,
    progress: () => ReplayProgress,
  ): Promise<void> {
    const { clock, telemetry, tell } = this.#options;
    while (!signal.aborted) {
      try {
        await tell(progress());
        telemetry.failures.worked(NOT_REPORTED);
      } catch (error) {
        // The replay continues.
        telemetry.failures.failed(NOT_REPORTED, error);
      }
      await clock.sleep(every, signal).catch(() => {});
    }
  }

  /** Includes what another release has left in an older shape. */
  async #discard(projection: Projection, name: string): Promise<void> {
    const { readModel } = this.#options;
    for (let schema = 1; schema <= projection.schema; schema += 1) {
      const view = { ...replayedAs(projection, name), schema };
      await readModel.withdraw(view);
      for (const generation of await readModel.generations(view)) {
        await readModel.discard(view, generation);
      }
    }
  }

  #followOrders(signal: AbortSignal): Promise<void> {
    const { store } = this.#options;
    const prefixes = [streams.replays()];
    const failure = 'could not follow the orders for replays; retrying';
    return keepRunning({ ...this.#options, failure }, signal, async () => {
      const after = await store.head();
      this.#changed.abort();
      for await (const message of store.subscribe({ after, prefixes, signal })) {
        if (message.kind === 'events') this.#changed.abort();
      }
    });
  }

  /** Resolves when the orders have changed, or a replay may have expired. */
  #notified(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const woken = AbortSignal.any([signal, this.#changed.signal]);
    return new Promise((resolve) => {
      if (woken.aborted) return resolve();
      const cancel = clock.after(CHECK_INTERVAL_MS, resolve, { background: true });
      const end = (): void => {
        cancel();
        resolve();
      };
      woken.addEventListener('abort', end, { once: true });
    });
  }
}
