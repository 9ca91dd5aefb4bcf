import type { ArtifactStore } from '../../domain/artifacts/artifact-store.ts';
import { MAX_CLOCK_SKEW, fromIso, toIso, type Instant } from '../../domain/clock.ts';
import { isConflict, type Position } from '../../domain/event-store.ts';
import type { CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import {
  removedKinds,
  retainedKinds,
  type RemovedKind,
  type RetainedKind,
} from '../../domain/vocabulary.ts';
import { dayOf } from '../../projections/views/statistics-days.ts';
import type { ProcessParts } from '../process-parts.ts';
import type { Leadership } from '../processes/leadership.ts';
import { LogCheckpoint } from '../processes/log-checkpoint.ts';
import { removeArtifacts } from './artifact-removal.ts';
import { endOfDay, recordDayFigures } from './day-figures.ts';
import { oldEvents } from './old-events.ts';
import { Removal } from './removal.ts';
import { retentionRules } from './retention-rules.ts';

/** The message that reports a failure. */
const FAILURE = 'could not remove old records; retrying';

/** How long records of each kind are kept after their end, in milliseconds; null: forever. */
export type RetentionLimits = { readonly [K in RetainedKind]: number | null };

const BATCH_SIZE = 100;

/** Records a second. Removal is never urgent, and must not slow down other work on the disk. */
const DEFAULT_RATE = 500;

/**
 * Milliseconds between two passes, between two checks for leadership, and before records that expire later are checked
 * again.
 */
const PASS_INTERVAL = 600_000;
const LEADER_CHECK = 5_000;
const EXPIRY_RECHECK = 86_400_000;

/** Milliseconds between two searches for artifacts of removed runs if no runs are removed. */
const ARTIFACT_CHECK = 86_400_000;

/** Later than any event. */
const LATEST = '9999';

type Options = Pick<ProcessParts, 'store' | 'coordination' | 'clock' | 'telemetry' | 'name'> & {
  readonly leadership: Pick<Leadership, 'leads' | 'fence'>;
  readonly limits: RetentionLimits;
  /** The artifacts, which are removed with their runs. Default: there are none. */
  readonly artifacts?: ArtifactStore | undefined;
  /** Records a second at most; default 500. */
  readonly rate?: number;
};

/**
 * Removes records that ended long ago, oldest first, according to the settings. It reads the log in order up to the
 * time that is old enough. A record is removed at its last event, so never while it is open. Runs are removed by whole
 * days, whose figures are recorded first. The payload of an event is removed within a day after the last run that needs
 * it.
 */
export class Retention {
  readonly #options: Options;
  /** The time before which no record of a kind can be old enough. */
  readonly #next = new Map<RemovedKind, Instant>();
  /** The time of the next search for artifacts of removed runs. */
  #nextArtifacts: Instant = -Infinity;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Runs passes while this process is the leader, until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, leadership, telemetry } = this.#options;
    while (!signal.aborted) {
      if (leadership.leads) {
        try {
          await this.pass(signal);
          telemetry.failures.worked(FAILURE);
        } catch (error) {
          if (signal.aborted) break;
          if (isConflict(error)) telemetry.log.info('another process removes old records');
          else telemetry.failures.failed(FAILURE, error);
        }
      }
      await clock.sleep(leadership.leads ? PASS_INTERVAL : LEADER_CHECK, signal).catch(() => {});
    }
  }

  /**
   * Removes all records that are old enough now, of each kind with a limit.
   * @throws EventStoreError, CoordinationError, ArtifactError the first error, after all kinds have had their turn
   */
  async pass(signal: AbortSignal): Promise<void> {
    const { store, limits, clock } = this.#options;
    if (retainedKinds.every((kind) => limits[kind] === null)) return;
    const removal = new Removal(store, () => this.#context());
    await removal.finish();
    const errors: unknown[] = [];
    for (const kind of removedKinds) {
      const limit = limits[kind === 'payloads' ? 'runs' : kind];
      if (limit === null) continue;
      const before = clock.now() - limit;
      if (before < (this.#next.get(kind) ?? -Infinity)) continue;
      try {
        if (kind === 'runs') await this.#removeDays(removal, before, signal);
        else await this.#removeUpTo(removal, kind, before, signal);
      } catch (error) {
        errors.push(error);
        // Only the last record is finished after a crash, so it must be finished before the next.
        await removal.finish();
      }
    }
    try {
      await this.#removeArtifacts(signal);
    } catch (error) {
      errors.push(error);
    }
    if (errors.length > 0) throw errors[0];
  }

  /**
   * After a crash or an outage of the store, artifacts of runs removed earlier may be left. So all artifacts are
   * searched.
   */
  async #removeArtifacts(signal: AbortSignal): Promise<void> {
    const { store, artifacts, limits, clock, telemetry } = this.#options;
    const now = clock.now();
    if (artifacts === undefined || limits.runs === null || now < this.#nextArtifacts) return;
    const before = now - limits.runs;
    const continues = (): boolean => this.#continues(signal);
    const removed = await removeArtifacts(artifacts, store, before, continues);
    if (removed > 0)
      telemetry.log.debug('artifacts of removed runs removed', { artifacts: removed });
    if (continues()) this.#nextArtifacts = now + ARTIFACT_CHECK;
  }

  /** Removes runs day by day, each once it ended at least {@link MAX_CLOCK_SKEW} ago. */
  async #removeDays(removal: Removal, before: Instant, signal: AbortSignal): Promise<void> {
    const { store } = this.#options;
    for (let last = ''; this.#continues(signal);) {
      const after = await this.#checkpoint('runs').load();
      const day = await this.#firstDay(after, last, signal);
      if (day === null) return;
      const end = fromIso(endOfDay(day));
      this.#next.set('runs', end + MAX_CLOCK_SKEW);
      if (end + MAX_CLOCK_SKEW > before) return;
      // All events of the day come after the checkpoint: it is before the first event of any day
      // after the last recorded day.
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

  /** The day of the first run event after a position that is later than a given day; null for none. */
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
   * Removes the records of a kind that ended before a time. A record that expires later has no further event, so the
   * checkpoint stays before it, and everything from there on is read again a day later.
   */
  async #removeUpTo(
    removal: Removal,
    kind: RemovedKind,
    before: Instant,
    signal: AbortSignal,
  ): Promise<void> {
    const { store, leadership } = this.#options;
    const { prefix } = retentionRules[kind];
    const checkpoint = this.#checkpoint(kind);
    const after = await checkpoint.load();
    const asked = { prefix, after, before: toIso(before), present: this.#present(), signal };
    let expiring = 0;
    for await (const { events, upTo, newer } of oldEvents(store, asked)) {
      const names = [...new Set(events.map(({ stream }) => stream))];
      for (let from = 0; from < names.length; from += BATCH_SIZE) {
        if (!this.#continues(signal)) return;
        const removed = await removal.remove(kind, names.slice(from, from + BATCH_SIZE), before);
        expiring += removed.expiring;
        await this.#report(kind, removed.records, signal);
      }
      if (!this.#continues(signal)) return;
      if (newer !== null && kind !== 'runs') this.#next.set(kind, fromIso(newer));
      if (upTo === after || expiring > 0) continue;
      checkpoint.observe(events);
      await checkpoint.save(upTo, leadership.fence);
    }
    if (expiring > 0) this.#next.set(kind, before + EXPIRY_RECHECK);
  }

  async #report(kind: RemovedKind, records: number, signal: AbortSignal): Promise<void> {
    const { telemetry, clock, rate = DEFAULT_RATE } = this.#options;
    if (records === 0) return;
    if (kind === 'runs') this.#nextArtifacts = -Infinity;
    telemetry.count('retention_removed_total', { kind }, records);
    telemetry.log.debug('old records removed', { kind, records });
    await clock.sleep((records / rate) * 1000, signal).catch(() => {});
  }

  /** The position up to which all records of a kind were checked. */
  #checkpoint(kind: RemovedKind): LogCheckpoint {
    const { coordination, store } = this.#options;
    return new LogCheckpoint(coordination, store, `retention-${kind}`);
  }

  #present(): string {
    return toIso(this.#options.clock.now() + MAX_CLOCK_SKEW);
  }

  #continues(signal: AbortSignal): boolean {
    return !signal.aborted && this.#options.leadership.leads;
  }

  #context(): CommandContext {
    const { clock, name: source } = this.#options;
    const now = clock.now();
    const id = newId(now);
    return { commandId: id, actor: 'service', source, correlationId: id, now };
  }
}
