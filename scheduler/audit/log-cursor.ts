import { BEGINNING, type Position, type RecordedEvent } from '../../domain/event-store.ts';
import { LogCheckpoint } from '../processes/log-checkpoint.ts';
import type { AuditParts } from './audit.ts';

const REST_MS = 10;

type LogCursorParts = Pick<AuditParts, 'store' | 'coordination' | 'leadership' | 'clock'>;

/** Reads the log from a remembered position, some pages in each pass. */
export class LogCursor {
  /** All events up to here have been taken. */
  position: Position = BEGINNING;
  readonly #parts: LogCursorParts;
  readonly #checkpoint: LogCheckpoint;
  readonly #prefix: string;
  #fence: number | null = null;

  /** @param name of the checkpoint */
  constructor(parts: LogCursorParts, name: string, prefix: string) {
    this.#parts = parts;
    this.#checkpoint = new LogCheckpoint(parts.coordination, parts.store, name);
    this.#prefix = prefix;
  }

  /**
   * Recalls the position if leadership was won since the last call.
   * @param fallback a checkpoint to use if none is remembered
   * @returns whether it was recalled
   */
  async recall(fallback?: string): Promise<boolean> {
    const { store, coordination, leadership } = this.#parts;
    const { fence } = leadership;
    if (fence === this.#fence) return false;
    this.position = await this.#checkpoint.load();
    if (this.position === BEGINNING && fallback !== undefined) {
      this.position = await new LogCheckpoint(coordination, store, fallback).load();
    }
    this.#fence = fence;
    return true;
  }

  /** Continues reading. @param take returns false to stop before an event */
  async advance(
    maxPages: number,
    signal: AbortSignal,
    take: (event: RecordedEvent) => boolean | Promise<boolean>,
  ): Promise<void> {
    for (let pages = 0; pages < maxPages && !signal.aborted; pages += 1) {
      const { events, end } = await this.#nextPage(signal);
      this.#checkpoint.observe(events);
      for (const event of events) {
        if (!(await take(event))) return;
        this.position = event.position;
      }
      if (end !== null) {
        this.position = end;
        return;
      }
      await this.#parts.clock.sleep(REST_MS, signal);
    }
  }

  /** Remembers the position, or an earlier one from which to read again. */
  async save(position = this.position): Promise<void> {
    await this.#checkpoint.save(position, this.#fence ?? 0);
  }

  /** The next events; `end` is the end of the log if it was reached. */
  async #nextPage(
    signal: AbortSignal,
  ): Promise<{ readonly events: readonly RecordedEvent[]; readonly end: Position | null }> {
    const from = { after: this.position, prefixes: [this.#prefix], signal };
    for await (const message of this.#parts.store.subscribe(from)) {
      if (message.kind === 'caught-up') return { events: [], end: message.position };
      if (message.events.length > 0) return { events: message.events, end: null };
    }
    return { events: [], end: this.position };
  }
}
