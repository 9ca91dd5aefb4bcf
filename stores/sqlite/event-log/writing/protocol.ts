import type {
  EncodedEvent,
  EventStoreErrorCode,
  ExpectedRevision,
} from '../../../../domain/event-store.ts';

/**
 * What the writer thread is asked and answers. Appends travel as one text and one array of numbers for all that
 * a tick brought together: copying objects, or many small texts, between threads costs several times as
 * much.
 */
export type WriterRequest =
  | { readonly kind: 'appends'; readonly packed: PackedAppends }
  | {
      readonly kind: 'truncate';
      readonly ticket: number;
      readonly stream: string;
      readonly before: number;
    }
  /** To be written to a log in memory, which is thrown away. Answered by `done`. */
  | { readonly kind: 'rehearse'; readonly ticket: number; readonly packed: PackedAppends }
  | { readonly kind: 'ping'; readonly ticket: number }
  | { readonly kind: 'close' };

/** Sequences of appends, packed by {@link AppendPacker}. */
export interface PackedAppends {
  /**
   * For each sequence: ticket, number of appends, and for each append the length of the stream's name, the
   * expected revision, the number of events, and for each event the lengths of id, type, data and metadata.
   */
  readonly numbers: Float64Array;
  /** All texts, one behind the other. */
  readonly text: string;
}

/** A sequence of appends, as the thread sees it. */
export interface WriteSequence {
  readonly ticket: number;
  readonly appends: readonly WriteAppend[];
}

export interface WriteAppend {
  readonly stream: string;
  /** The revision, or one of {@link NONE} and {@link ANY}. */
  readonly expected: number;
  readonly events: readonly EncodedEvent[];
}

/** `expected` for a stream that must be without events: its "last revision". */
export const NONE = -1;
/** `expected` for a stream that may be anywhere. */
export const ANY = -2;

export type WriterAnswer =
  | { readonly kind: 'ready' }
  /** The thread could not open the log, and ends. */
  | { readonly kind: 'refused'; readonly message: string; readonly incompatible: boolean }
  | {
      /** A transaction has ended; durable, as far as something was written. */
      readonly kind: 'appended';
      /** Milliseconds since 1970: the events' time of creation. */
      readonly createdAt: number;
      /**
       * Sequences in the order they were written: ticket, number of appends that succeeded, and for each of
       * these 1 for a duplicate or 0, revision, position.
       */
      readonly results: Float64Array;
      readonly failures: readonly WriteFailure[];
      readonly timing: CommitTiming;
    }
  | { readonly kind: 'done'; readonly ticket: number }
  | { readonly kind: 'failed'; readonly failure: WriteFailure }
  /** Something that harmed no append but should be known. */
  | { readonly kind: 'warning'; readonly message: string };

/** What the thread is started with. */
export interface WriterSettings {
  readonly file: string;
  /** Whether the file may be made. */
  readonly create: boolean;
  /** Milliseconds to wait for another process's lock. */
  readonly lockTimeout: number;
  /** The file may not grow beyond this. */
  readonly maxBytes: number | undefined;
}

/** Why a sequence ended early; what of it succeeded before is in the results. */
export interface WriteFailure {
  readonly ticket: number;
  readonly code: EventStoreErrorCode;
  readonly message: string;
  readonly stream?: string;
  /** As in {@link WriteAppend}. */
  readonly expected?: number;
  /** The stream's last revision, or {@link NONE}. */
  readonly actual?: number;
}

/** Milliseconds. */
export interface CommitTiming {
  readonly waitedForLock: number;
  readonly writing: number;
}

/** Brings together what goes to the thread in one message. */
export class AppendPacker {
  #numbers: number[] = [];
  #texts: string[] = [];
  #size = 0;

  /** How many sequences there are. */
  get size(): number {
    return this.#size;
  }

  add({ ticket, appends }: WriteSequence): void {
    this.#size += 1;
    this.#numbers.push(ticket, appends.length);
    for (const { stream, expected, events } of appends) {
      this.#numbers.push(stream.length, expected, events.length);
      this.#texts.push(stream);
      for (const { id, type, data, metadata } of events) {
        this.#numbers.push(id.length, type.length, data.length, metadata.length);
        this.#texts.push(id, type, data, metadata);
      }
    }
  }

  /** What was added since the last time. */
  take(): PackedAppends {
    const packed = { numbers: Float64Array.from(this.#numbers), text: this.#texts.join('') };
    this.#numbers = [];
    this.#texts = [];
    this.#size = 0;
    return packed;
  }
}

/** The sequences of a message. */
export function readSequences({ numbers, text }: PackedAppends): WriteSequence[] {
  const sequences: WriteSequence[] = [];
  let at = 0;
  let from = 0;
  const number = (): number => Number(numbers[at++]);
  const part = (): string => {
    const start = from;
    from += number();
    return text.slice(start, from);
  };
  while (at < numbers.length) {
    const ticket = number();
    const appends: WriteAppend[] = [];
    for (let left = number(); left > 0; left -= 1) {
      const stream = part();
      const expected = number();
      const events: EncodedEvent[] = [];
      for (let more = number(); more > 0; more -= 1) {
        events.push({ id: part(), type: part(), data: part(), metadata: part() });
      }
      appends.push({ stream, expected, events });
    }
    sequences.push({ ticket, appends });
  }
  return sequences;
}

/** The port's expectation as a number. */
export function expectedToNumber(expected: ExpectedRevision): number {
  return expected === 'none' ? NONE : expected === 'any' ? ANY : expected;
}

/** The port's expectation again. */
export function expectedFromNumber(expected: number): ExpectedRevision {
  return expected === NONE ? 'none' : expected === ANY ? 'any' : expected;
}
