import { MAX_CLOCK_SKEW, fromIso } from '../../domain/clock.ts';
import type { Position, RecordedEvent } from '../../domain/event-store.ts';
import type { KeyEvent } from '../../domain/events/catalogue.ts';
import { releaseStale, type KeyPlace } from '../../domain/keys/stale-holders.ts';
import { stateAfter, type KeyState } from '../../domain/keys/key.ts';
import { placesOf } from '../../domain/runs/run-request.ts';
import type { AuditCheck, AuditParts } from './audit.ts';
import type { Findings } from './findings.ts';
import { LogCursor } from './log-cursor.ts';

/** The position before which no key is in use, unless a later event says so. */
const CHECKPOINT = 'keys-audited';

/** Places younger than this are not checked, because most places last less long. Milliseconds. */
const MIN_AGE = 60_000;

/** Limits of one pass: pages of the log, runs' streams, and places of one key. */
const MAX_PAGES = 60;
const MAX_READS = 500;
const MAX_PLACES = 20;

const REST_MS = 10;

interface KeyInUse {
  readonly state: KeyState;
  /** The position before the key's last event. */
  readonly before: Position;
}

/**
 * Each slot and each waiter's place belongs to a run that needs it. This check follows the keys from a position before
 * which none is in use, and so finds keys that no worker knows.
 */
export class KeysHaveRuns implements AuditCheck {
  readonly name = 'keys_have_runs';
  readonly #parts: AuditParts;
  readonly #log: LogCursor;
  /** Checked keys by stream, the most recently checked last. */
  readonly #inUse = new Map<string, KeyInUse>();
  #turn = 0;

  constructor(parts: AuditParts) {
    this.#parts = parts;
    this.#log = new LogCursor(parts, CHECKPOINT, 'key-');
  }

  async run(findings: Findings, signal: AbortSignal): Promise<void> {
    if (await this.#log.recall()) this.#inUse.clear();
    await this.#log.advance(MAX_PAGES, signal, (event) => this.#take(event));
    let reads = 0;
    for (const [stream, key] of [...this.#inUse]) {
      if (signal.aborted || reads >= MAX_READS) break;
      const places = this.#checkedPlaces(key.state).length;
      if (places === 0) continue;
      reads += places;
      await this.#release(key.state, findings);
      if (this.#inUse.get(stream) === key) {
        this.#inUse.delete(stream);
        this.#inUse.set(stream, key);
      }
      await this.#parts.clock.sleep(REST_MS, signal);
    }
    this.#turn += 1;
    await this.#log.save(this.#restartPosition());
  }

  #take(event: RecordedEvent): boolean {
    if (event.fault === undefined) {
      const state = stateAfter(event as unknown as KeyEvent);
      this.#inUse.delete(event.stream);
      if (state.holders.length + state.waiters.length > 0) {
        this.#inUse.set(event.stream, { state, before: this.#log.position });
      }
    }
    return true;
  }

  /** The position from which a later pass finds every key that is in use now. */
  #restartPosition(): Position {
    let { position } = this.#log;
    for (const { before } of this.#inUse.values()) if (before < position) position = before;
    return position;
  }

  async #release({ kind, owner, key }: KeyState, findings: Findings): Promise<void> {
    const { store, clock, source, lease } = this.#parts;
    const context = { actor: 'service', source, correlationId: key, now: clock.now() };
    const { answer } = await releaseStale(store, { kind, owner, key }, context, lease, (state) =>
      this.#checkedPlaces(state),
    );
    for (const run of answer) {
      findings.add('key_without_run', run, true, { key: `${kind} ${key}` });
    }
  }

  /** The places that are old enough. If there are many, each pass gets other places. */
  #checkedPlaces(state: KeyState): readonly KeyPlace[] {
    const now = this.#parts.clock.now();
    const all = placesOf(state).filter(({ since }) => {
      // A place with a time further ahead than clocks can differ was written by a wrong clock.
      const age = now - fromIso(since);
      return age >= MIN_AGE || age < -MAX_CLOCK_SKEW;
    });
    if (all.length <= MAX_PLACES) return all;
    const first = (this.#turn * MAX_PLACES) % all.length;
    return [...all, ...all].slice(first, first + MAX_PLACES);
  }
}
