import { CLOCK_SKEW, fromIso, toIso, type Clock, type Instant } from '../../domain/clock.ts';
import { isConflict, type EventStore, type Position } from '../../domain/event-store.ts';
import type { CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { retainedKinds, type RetainedKind } from '../../domain/vocabulary.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { dayOf } from '../../projections/views/statistics.ts';
import type { Coordination } from '../coordination.ts';
import type { Leadership } from '../processes/leadership.ts';
import { RememberedPosition } from '../processes/remembered-position.ts';
import { endOfDay, recordDayFigures } from './day-figures.ts';
import { oldEvents } from './old-events.ts';
import { retentionRules } from './retention-rules.ts';
import { Removal } from './removal.ts';

/** How long each kind is kept after it has ended, in milliseconds; null: for ever. */
export type RetentionLimits = { readonly [K in RetainedKind]: number | null };

/** Records to a record of removal. */
const BATCH = 100;

/** Records a second at most: it is never in a hurry, and the disk is others'. */
const RATE = 500;

/** Between two passes. Milliseconds. */
const PAUSE = 600_000;

/** Until what is yet to expire is looked at again. Milliseconds. */
const EXPIRING = 86_400_000;

/** Until it is looked again whether this process leads. Milliseconds. */
const PATIENCE = 5_000;

/** After all that occurs. */
const LATEST = '9999';

/** What the leader remembers: up to where everything of a kind was looked at. */
const checkpointOf = (kind: RetainedKind): string => `retention-${kind}`;

/**
 * Takes what ended long ago out of the views and then out of the log, oldest first, where the settings say so. It goes
 * through the log in its order, up to the moment that is old enough: a record is removed where its last event stands,
 * and so never while something can become of it. Runs go by whole days, whose figures are recorded before.
 */
export class Retention {
  readonly #options: ConstructorParameters<typeof Retention>[0];
  /** Before then nothing of a kind can be old enough. */
  readonly #next = new Map<RetainedKind, Instant>();

  constructor(options: {
    readonly store: EventStore;
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
    readonly leadership: Pick<Leadership, 'leads' | 'fence'>;
    /** Of the process, as the source of events. */
    readonly name: string;
    readonly limits: RetentionLimits;
    /** Records a second at most; default 500. */
    readonly rate?: number;
  }) {
    this.#options = options;
  }

  /** Passes over the log, again and again while this process leads, until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, leadership, telemetry } = this.#options;
    while (!signal.aborted) {
      if (leadership.leads) {
        try {
          await this.pass(signal);
        } catch (error) {
          if (signal.aborted) break;
          const fields = { error: error instanceof Error ? error.message : String(error) };
          if (isConflict(error)) telemetry.log.info('another process removes old records', fields);
          else telemetry.log.warn('old records could not be removed; it is tried again', fields);
        }
      }
      await clock.sleep(leadership.leads ? PAUSE : PATIENCE, signal).catch(() => {});
    }
  }

  /**
   * Removes all that is old enough now, of each kind that has a limit.
   * @throws EventStoreError, CoordinationError: the first fault, once the other kinds have had their turn
   */
  async pass(signal: AbortSignal): Promise<void> {
    const { store, limits, clock } = this.#options;
    if (retainedKinds.every((kind) => limits[kind] === null)) return;
    const removal = new Removal(store, () => this.#context());
    await removal.finish();
    const faults: unknown[] = [];
    for (const kind of retainedKinds) {
      const limit = limits[kind];
      if (limit === null) continue;
      const before = clock.now() - limit;
      // Going through the log up to the same event again would find nothing.
      if (before < (this.#next.get(kind) ?? -Infinity)) continue;
      try {
        if (kind === 'runs') await this.#removeDays(removal, before, signal);
        else await this.#removeUpTo(removal, kind, before, signal);
      } catch (error) {
        faults.push(error);
        // What was recorded is cut before anything else is recorded: only the last record is looked at again.
        await removal.finish();
      }
    }
    if (faults.length > 0) throw faults[0];
  }

  /** Day by day, each only once it has been over for as long as clocks may differ. */
  async #removeDays(removal: Removal, before: Instant, signal: AbortSignal): Promise<void> {
    const { store } = this.#options;
    for (let last = ''; this.#goesOn(signal);) {
      const after = await this.#place('runs').recall();
      const day = await this.#firstDay(after, last, signal);
      if (day === null) return;
      const end = fromIso(endOfDay(day));
      this.#next.set('runs', end + CLOCK_SKEW);
      if (end + CLOCK_SKEW > before) return;
      // All events of the day lie behind: what was gone through ended with the first event of a later day than before.
      const present = this.#present();
      await recordDayFigures(store, day, after, {
        context: () => this.#context(),
        present,
        signal,
      });
      await this.#removeUpTo(removal, 'runs', end, signal);
      last = day;
    }
  }

  /** The day of the first event of a run after a position that is later than a day; null for none. */
  async #firstDay(after: Position, last: string, signal: AbortSignal): Promise<string | null> {
    const { store } = this.#options;
    const present = this.#present();
    const asked = { prefix: retentionRules.runs.prefix, after, before: LATEST, present, signal };
    for await (const { events } of oldEvents(store, asked)) {
      for (const { metadata } of events) {
        const day = dayOf(metadata.occurredAt);
        if (day > last && metadata.occurredAt <= present) return day;
      }
    }
    return null;
  }

  /**
   * What is old enough and yet to expire stays behind: its last event will not come again, so the place is not remembered
   * beyond it, and all from there on is gone through again a day later.
   */
  async #removeUpTo(
    removal: Removal,
    kind: RetainedKind,
    before: Instant,
    signal: AbortSignal,
  ): Promise<void> {
    const { store, leadership } = this.#options;
    const { prefix } = retentionRules[kind];
    const place = this.#place(kind);
    const after = await place.recall();
    const asked = { prefix, after, before: toIso(before), present: this.#present(), signal };
    let expiring = 0;
    for await (const { events, upTo, newer } of oldEvents(store, asked)) {
      const names = [...new Set(events.map(({ stream }) => stream))];
      for (let from = 0; from < names.length; from += BATCH) {
        if (!this.#goesOn(signal)) return;
        const some = names.slice(from, from + BATCH);
        expiring += await this.#removeSome(removal, kind, some, before, signal);
      }
      if (!this.#goesOn(signal)) return;
      if (newer !== null && kind !== 'runs') this.#next.set(kind, fromIso(newer));
      if (upTo === after || expiring > 0) continue;
      place.came(events);
      await place.remember(upTo, leadership.fence);
    }
    if (expiring > 0) this.#next.set(kind, before + EXPIRING);
  }

  /** @returns how many of them are yet to expire */
  async #removeSome(
    removal: Removal,
    kind: RetainedKind,
    names: readonly string[],
    before: Instant,
    signal: AbortSignal,
  ): Promise<number> {
    const { telemetry, clock, rate = RATE } = this.#options;
    const { records, expiring } = await removal.remove(kind, names, before);
    if (records > 0) {
      telemetry.count('retention_removed_total', { kind }, records);
      telemetry.log.debug('old records were removed', { kind, records });
      await clock.sleep((records / rate) * 1000, signal).catch(() => {});
    }
    return expiring;
  }

  #place(kind: RetainedKind): RememberedPosition {
    const { coordination, store } = this.#options;
    return new RememberedPosition(coordination, store, checkpointOf(kind));
  }

  #present(): string {
    return toIso(this.#options.clock.now() + CLOCK_SKEW);
  }

  #goesOn(signal: AbortSignal): boolean {
    return !signal.aborted && this.#options.leadership.leads;
  }

  #context(): CommandContext {
    const { clock, name } = this.#options;
    const now = clock.now();
    const id = newId(now);
    return { commandId: id, actor: 'service', source: name, correlationId: id, now };
  }
}
