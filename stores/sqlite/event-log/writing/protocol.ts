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
  /** The WAL's file is to be as long as it becomes under load. Answered by `done`, also where it can't be. */
  | { readonly kind: 'make-room'; readonly ticket: number }
  | { readonly kind: 'ping'; readonly ticket: number }
  | { readonly kind: 'close' };

/** Sequences of appends, packed by {@link AppendPacker}; taken out by {@link PackedSequences}. */
export interface PackedAppends {
  /** How many sequences. */
  readonly size: number;
  /**
   * For each sequence: ticket, number of appends, and for each append the length of the stream's name, the
   * expected revision, the number of events, and for each event the lengths of id, type, data and metadata.
   */
  readonly numbers: Float64Array;
  /**
   * The names of the streams, one behind the other. By themselves, as they are remembered: a part of a long text keeps
   * the whole of it in memory.
   */
  readonly names: string;
  /** All other texts, one behind the other. */
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
  #names: string[] = [];
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
      this.#names.push(stream);
      for (const { id, type, data, metadata } of events) {
        this.#numbers.push(id.length, type.length, data.length, metadata.length);
        this.#texts.push(id, type, data, metadata);
      }
    }
  }

  /** What was added since the last time. */
  take(): PackedAppends {
    const packed = {
      size: this.#size,
      numbers: Float64Array.from(this.#numbers),
      names: this.#names.join(''),
      text: this.#texts.join(''),
    };
    this.#numbers = [];
    this.#names = [];
    this.#texts = [];
    this.#size = 0;
    return packed;
  }
}

/** The sequences of a message, made into objects only as they are taken: what waits costs the collector nothing. */
export class PackedSequences {
  readonly #packed: PackedAppends;
  #at = 0;
  #nameAt = 0;
  #textAt = 0;
  #left: number;

  constructor(packed: PackedAppends) {
    this.#packed = packed;
    this.#left = packed.size;
  }

  /** How many have not been taken. */
  get left(): number {
    return this.#left;
  }

  /** Where it is in the texts of the events. */
  get characters(): number {
    return this.#textAt;
  }

  /** The next one. There must be one. */
  take(): WriteSequence {
    this.#left -= 1;
    const ticket = this.#number();
    const appends: WriteAppend[] = [];
    for (let left = this.#number(); left > 0; left -= 1) appends.push(this.#append());
    return { ticket, appends };
  }

  #append(): WriteAppend {
    const stream = this.#packed.names.slice(this.#nameAt, (this.#nameAt += this.#number()));
    const expected = this.#number();
    const events: EncodedEvent[] = [];
    for (let left = this.#number(); left > 0; left -= 1) {
      events.push({
        id: this.#part(),
        type: this.#part(),
        data: this.#part(),
        metadata: this.#part(),
      });
    }
    return { stream, expected, events };
  }

  #number(): number {
    return Number(this.#packed.numbers[this.#at++]);
  }

  #part(): string {
    return this.#packed.text.slice(this.#textAt, (this.#textAt += this.#number()));
  }
}

/** The port's expectation as a number. */
export function expectedToNumber(expected: ExpectedRevision): number {
  return expected === 'none' ? NONE : expected === 'any' ? ANY : expected;
}

/** The port's expectation again. */
export function expectedFromNumber(expected: number): ExpectedRevision {
  return expected === NONE ? 'none' : expected === ANY ? 'any' : expected;
}
