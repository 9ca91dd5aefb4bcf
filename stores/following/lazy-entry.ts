import type { Position, RecordedEvent } from '../../domain/event-store.ts';
import type { LogEntry } from '../../domain/log-engine.ts';

/** An entry that decodes its event once, for all followers. */
export class LazyEntry implements LogEntry {
  readonly stream: string;
  readonly position: Position;
  readonly size: number;
  #decode: (() => RecordedEvent) | undefined;
  #event: RecordedEvent | undefined;
  /** The prefixes of the last call, and the result. */
  #asked: readonly string[] | undefined;
  #isOf = false;

  /** @param decode called again if it has thrown; released once it has returned */
  constructor(stream: string, position: Position, size: number, decode: () => RecordedEvent) {
    this.stream = stream;
    this.position = position;
    this.size = size;
    this.#decode = decode;
  }

  isOf(prefixes: readonly string[]): boolean {
    if (this.#asked === prefixes) return this.#isOf;
    this.#asked = prefixes;
    this.#isOf = false;
    for (const prefix of prefixes) {
      if (!this.stream.startsWith(prefix)) continue;
      this.#isOf = true;
      break;
    }
    return this.#isOf;
  }

  event(): RecordedEvent {
    const event = (this.#event ??= this.#decode?.());
    if (event === undefined) throw new Error('an entry of the log was decoded to nothing');
    this.#decode = undefined;
    return event;
  }
}
