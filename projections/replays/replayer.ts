import { toIso, type Clock } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { load, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import {
  projectionOrdersFold,
  type ProjectionOrders,
} from '../../domain/operators/projection-orders.ts';
import { reportReplay, replaysFold, type Replay } from '../../domain/operators/replays.ts';
import { streams } from '../../domain/streams.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { BackOff } from '../projector/back-off.ts';
import { PoisonedFillError } from '../generations/generation-feeder.ts';
import type { Projection, ReadModel } from '../read-model.ts';
import { ReplayFilling } from './replay-filling.ts';
import type { ReplayProgress } from './replay-report.ts';
import { replayable, replayedAs } from './replay-views.ts';

export interface ReplayerOptions {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Of the projector's lease: writers with a smaller one are refused. */
  readonly fence: number;
  /** Told how far the one is that is being made, from time to time. What it throws is logged. */
  readonly tell: (progress: ReplayProgress) => Promise<void>;
  /** Milliseconds between two reports; default 500. */
  readonly every?: number;
}

/** Looked at at least this often, for those whose time is over. Milliseconds. */
const LOOK_EVERY = 60_000;

/**
 * Makes views as of a moment, and throws away those that nobody wants any more: one step at a time, by comparing what
 * is ordered in the stream `replays` with what is there. So an order is carried out once, by whichever projector
 * leads, and after a death it goes on where it was left.
 */
export class Replayer {
  readonly #options: ReplayerOptions;
  /** Ends the filling at hand when its order has changed. */
  #changed = new AbortController();
  #wake: () => void = () => undefined;

  constructor(options: ReplayerOptions) {
    this.#options = options;
  }

  /** Runs until the signal is aborted. Does not reject: what fails is tried again. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, telemetry } = this.#options;
    const following = this.#followOrders(signal);
    const backOff = new BackOff(clock);
    while (!signal.aborted) {
      this.#changed = new AbortController();
      try {
        const next = await this.#next();
        if (next === null) await this.#somethingNew(signal);
        else await this.#carryOut(next, signal);
        backOff.reset();
      } catch (error) {
        if (signal.aborted) break;
        const fields = { error: error instanceof Error ? error.message : String(error) };
        telemetry.log.warn('a replay can not be made; it is tried again', fields);
        await backOff.wait(signal);
      }
    }
    await following;
  }

  /** What has something to be done for it: first what is to go, so that there is room. */
  async #next(): Promise<Replay | null> {
    const { state } = await load(this.#options.store, streams.replays(), replaysFold);
    const all = [...state.known.values()];
    const going = all.find((replay) => this.#endOf(replay) !== null);
    if (going !== undefined) return going;
    for (const replay of all) {
      if (replay.error !== null) continue;
      if (replay.documents === null || (await this.#missing(replay)) !== null) return replay;
    }
    return null;
  }

  /** Why a replay is to be thrown away; null where it is not. */
  #endOf({ dropping, keptUntil }: Replay): 'asked' | 'expired' | null {
    if (dropping) return 'asked';
    return keptUntil <= this.#options.clock.now() ? 'expired' : null;
  }

  async #carryOut(replay: Replay, signal: AbortSignal): Promise<void> {
    const { store, telemetry } = this.#options;
    const end = this.#endOf(replay);
    const { name } = replay;
    if (end !== null) {
      for (const projection of replayable) await this.#discard(projection, name);
      await reportReplay(store, replay, { dropped: end }, this.#context());
      telemetry.log.info('a replay was thrown away', { replay: name, cause: end });
      return;
    }
    try {
      const documents = await this.#make(replay, signal);
      if (documents === null) return;
      if (replay.documents === null) {
        await reportReplay(store, replay, { documents }, this.#context());
      }
      telemetry.log.info('a replay can be read', { replay: name, documents });
    } catch (error) {
      if (!(error instanceof PoisonedFillError)) throw error;
      await reportReplay(store, replay, { error: error.message }, this.#context());
      telemetry.log.error('a replay could not be made', { replay: name, error: error.message });
    }
  }

  /** The first of its views that can't be read; null when all can. */
  async #missing({ name, version, views }: Replay): Promise<Projection | null> {
    for (const projection of replayable) {
      if (!views.includes(projection.name)) continue;
      const view = replayedAs(projection, name);
      if ((await this.#options.readModel.liveGeneration(view)) !== version) return projection;
    }
    return null;
  }

  /** What is ordered of the view that follows the log. @throws EventStoreError */
  async #ordersOf({ name, schema }: Projection): Promise<ProjectionOrders> {
    const { store } = this.#options;
    return (await load(store, streams.projection(name), projectionOrdersFold(schema))).state;
  }

  /** Makes what is missing. @returns how many documents each view has; null when it was interrupted */
  async #make(replay: Replay, signal: AbortSignal): Promise<Record<string, number> | null> {
    const { readModel, every = 500, clock } = this.#options;
    const { name, version, until, rate, views } = replay;
    const counts: Record<string, number> = {};
    const stop = AbortSignal.any([signal, this.#changed.signal]);
    for (const [index, projection] of replayable
      .filter((each) => views.includes(each.name))
      .entries()) {
      const view = replayedAs(projection, name);
      if ((await readModel.liveGeneration(view)) !== version) {
        const { skipped } = await this.#ordersOf(projection);
        const filling = new ReplayFilling({
          ...this.#options,
          ...{ projection: view, generation: version, until, rate, skipped },
        });
        const done = new AbortController();
        const telling = this.#tellOften(done.signal, every, () => ({
          at: toIso(clock.now()),
          ...{ name, version, view: projection.name, handled: filling.handled },
          progress: (index + filling.progress) / views.length,
          events_per_second: filling.rate,
        }));
        let count: number | null;
        try {
          count = await filling.run(stop);
        } finally {
          done.abort();
          await telling;
        }
        if (count === null) return null;
        await readModel.switchTo(view, version);
      }
      counts[projection.name] = await readModel.count(view, []);
    }
    return counts;
  }

  async #tellOften(
    signal: AbortSignal,
    every: number,
    progress: () => ReplayProgress,
  ): Promise<void> {
    const { clock, telemetry, tell } = this.#options;
    while (!signal.aborted) {
      try {
        await tell(progress());
      } catch (error) {
        // It goes on all the same; who asks is told less.
        telemetry.log.debug('how far a replay is could not be told', { error });
      }
      await rest(clock, every, signal);
    }
  }

  /** Also what another release has left of it, whose shape was an older one. */
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

  #context(): CommandContext {
    const now = this.#options.clock.now();
    const id = newId(now);
    return { commandId: id, actor: 'service', source: 'projector', correlationId: id, now };
  }

  async #followOrders(signal: AbortSignal): Promise<void> {
    const { store, clock, telemetry } = this.#options;
    const prefixes = [streams.replays()];
    const backOff = new BackOff(clock);
    while (!signal.aborted) {
      try {
        const after = await store.head();
        this.#notice();
        for await (const message of store.subscribe({ after, prefixes, signal })) {
          if (message.kind === 'events') this.#notice();
        }
        backOff.reset();
      } catch (error) {
        if (!signal.aborted) {
          const fields = { error: error instanceof Error ? error.message : String(error) };
          telemetry.log.warn('the orders for replays can not be followed', fields);
        }
      }
      await backOff.wait(signal);
    }
  }

  /** There is a new order. */
  #notice(): void {
    this.#changed.abort();
    this.#wake();
  }

  async #somethingNew(signal: AbortSignal): Promise<void> {
    if (this.#changed.signal.aborted) return;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    const { clock } = this.#options;
    await rest(clock, LOOK_EVERY, AbortSignal.any([signal, woken.signal]), true);
  }
}

/** Resolves after a while, or when the signal is aborted. */
function rest(clock: Clock, milliseconds: number, signal: AbortSignal, background = false) {
  return new Promise<void>((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.after(milliseconds, end, { background });
    signal.addEventListener('abort', end, { once: true });
  });
}
