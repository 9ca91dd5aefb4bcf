import { CLOCK_SKEW, fromIso, type Clock, type Instant } from '../../domain/clock.ts';
import { BEGINNING, type EventStore, type Position } from '../../domain/event-store.ts';
import type { KeyEvent } from '../../domain/events/catalogue.ts';
import { Judgement, type KeyPlace } from '../../domain/keys/key-judgement.ts';
import { changeKey } from '../../domain/keys/key-stream.ts';
import { releaseAll, type KeyName, type KeyState } from '../../domain/keys/key.ts';
import { placesOf } from '../../domain/runs/run-request.ts';
import type { Coordination } from '../coordination.ts';
import type { Leadership } from '../processes/leadership.ts';
import { RememberedPosition } from '../processes/remembered-position.ts';
import type { AuditCheck } from './audit.ts';
import type { Findings } from './findings.ts';
import { nextPage } from './log-page.ts';

/** Before this position no key is in use but by what a later event says. */
const CHECKPOINT = 'keys-audited';

/** Who has had his place for less than this is let be: most are gone by then. Milliseconds. */
const SETTLED = 60_000;

/** Most pages of the log read in one pass. */
const MOST_PAGES = 60;

/** Most runs' streams read in one pass. */
const MOST_READS = 500;

/** Most places of one key that one pass looks at. */
const MOST_OF_A_KEY = 20;

/** Milliseconds after a page, and after a key. */
const REST = 10;

interface KeyInUse {
  readonly name: KeyName;
  readonly state: KeyState;
  /** The position before its last event. */
  readonly before: Position;
}

/**
 * Each slot and each place in line belongs to a living run. It follows the keys from a place before which none is in
 * use, so that keys are found that nobody wants any more and no worker has heard of.
 */
export class KeysHaveRuns implements AuditCheck {
  readonly name = 'keys_have_runs';
  private readonly store: EventStore;
  private readonly place: RememberedPosition;
  private readonly clock: Clock;
  private readonly leadership: Leadership;
  private readonly source: string;
  private readonly lease: number;
  private fence: number | null = null;
  private after: Position = BEGINNING;
  /** By stream; those that were looked at last come last. */
  private readonly inUse = new Map<string, KeyInUse>();
  private turn = 0;

  constructor(options: {
    readonly store: EventStore;
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly leadership: Leadership;
    /** This process, as the source of what it appends. */
    readonly source: string;
    /** Milliseconds in which a run that holds a concurrency key must start. */
    readonly lease: number;
  }) {
    this.store = options.store;
    this.place = new RememberedPosition(options.coordination, options.store, CHECKPOINT);
    this.clock = options.clock;
    this.leadership = options.leadership;
    this.source = options.source;
    this.lease = options.lease;
  }

  async look(findings: Findings, signal: AbortSignal): Promise<void> {
    const { fence } = this.leadership;
    if (fence !== this.fence) {
      this.inUse.clear();
      this.after = await this.place.recall();
      this.fence = fence;
    }
    await this.goOn(signal);
    let reads = 0;
    for (const [stream, key] of [...this.inUse]) {
      if (signal.aborted || reads >= MOST_READS) break;
      const places = this.settled(key.state).length;
      if (places === 0) continue;
      reads += places;
      await this.sweep(key.name, findings);
      if (this.inUse.get(stream) === key) {
        this.inUse.delete(stream);
        this.inUse.set(stream, key);
      }
      await this.clock.sleep(REST, signal);
    }
    this.turn += 1;
    await this.place.remember(this.safePlace(), fence);
  }

  private async goOn(signal: AbortSignal): Promise<void> {
    for (let pages = 0; pages < MOST_PAGES && !signal.aborted; pages += 1) {
      const page = await nextPage(this.store, this.after, ['key-'], signal);
      this.place.came(page.events);
      for (const event of page.events) {
        if (event.fault === undefined) {
          const { run_id: _about, ...state } = (event as unknown as KeyEvent).data;
          const { kind, owner, key } = state;
          this.inUse.delete(event.stream);
          if (state.holders.length + state.waiters.length > 0) {
            const name = { kind, owner, key };
            this.inUse.set(event.stream, { name, state, before: this.after });
          }
        }
        this.after = event.position;
      }
      this.after = page.upTo;
      if (page.isEnd) return;
      await this.clock.sleep(REST, signal);
    }
  }

  /** From here on a later pass finds every key that is in use now: each by its last event. */
  private safePlace(): Position {
    let place = this.after;
    for (const { before } of this.inUse.values()) if (before < place) place = before;
    return place;
  }

  private async sweep(name: KeyName, findings: Findings): Promise<void> {
    const now = this.clock.now();
    const context = { actor: 'service', source: this.source, correlationId: name.key, now };
    const judgement = new Judgement(this.store, context, this.lease);
    const { answer: dead } = await changeKey(this.store, name, context, async (state) => {
      const runs = await judgement.dead(name, this.settled(state));
      return { events: releaseAll(state, runs).events, answer: runs };
    });
    for (const run of dead) {
      const { kind, key } = name;
      findings.add('key_without_run', run, true, { key: `${kind} ${key}` });
    }
  }

  /** Those who have had their place for a while; of many, others with each pass. */
  private settled(state: KeyState): readonly KeyPlace[] {
    const now: Instant = this.clock.now();
    const all = placesOf(state).filter(({ since }) => {
      // Who has it from further ahead than clocks differ has it by one that was wrong.
      const had = now - fromIso(since);
      return had >= SETTLED || had < -CLOCK_SKEW;
    });
    if (all.length <= MOST_OF_A_KEY) return all;
    const first = (this.turn * MOST_OF_A_KEY) % all.length;
    return [...all, ...all].slice(first, first + MOST_OF_A_KEY);
  }
}
