import type {
  EncodedEvent,
  EventStoreErrorCode,
  ExpectedRevision,
} from '../../../../domain/event-store.ts';

/**
 * Requests to the writer thread. All appends of a tick travel as two strings and one array of numbers: copying objects
 * between threads costs several times as much.
 */
export type WriterRequest =
  | { readonly kind: 'appends'; readonly packed: PackedAppends }
  | {
      readonly kind: 'truncate';
      readonly ticket: number;
      readonly stream: string;
      readonly before: number;
    }
  /** Write to a log in memory, which is discarded. Answered by `done`. */
  | { readonly kind: 'rehearse'; readonly ticket: number; readonly packed: PackedAppends }
  | { readonly kind: 'ping'; readonly ticket: number }
  | { readonly kind: 'close' };

/** Sequences packed by {@link AppendPacker} and unpacked by {@link PackedSequences}. */
export interface PackedAppends {
  /** Number of sequences. */
  readonly size: number;
  /**
   * Per sequence: ticket, number of appends. Per append: length of the stream's name, expected revision, number of
   * events. Per event: lengths of id, type, data and metadata.
   */
  readonly numbers: Float64Array;
  /** The stream names, joined. Separate, because a remembered substring keeps its whole string in memory. */
  readonly names: string;
  /** All other strings, joined. */
  readonly text: string;
}

/** A sequence of appends, unpacked. */
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

/** `expected` for a stream without events: its "last revision". */
export const NONE = -1;
/** `expected` for a stream at any revision. */
export const ANY = -2;

export type WriterAnswer =
  | { readonly kind: 'ready' }
  /** The thread could not open the log, and ends. */
  | { readonly kind: 'refused'; readonly message: string; readonly incompatible: boolean }
  | {
      /** A transaction has ended, durably. */
      readonly kind: 'appended';
      /** The events' creation time in milliseconds since 1970. */
      readonly createdAt: number;
      /**
       * Sequences in written order: ticket, number of successful appends, and for each of these 1 (duplicate) or 0,
       * revision, position.
       */
      readonly results: Float64Array;
      readonly failures: readonly WriteFailure[];
      readonly timing: CommitTiming;
    }
  | { readonly kind: 'done'; readonly ticket: number }
  | { readonly kind: 'failed'; readonly failure: WriteFailure }
  /** A harmless fault that should be known. */
  | { readonly kind: 'warning'; readonly message: string };

/** The thread's `workerData`. */
export interface WriterSettings {
  readonly file: string;
  /** Whether a missing file is created. */
  readonly create: boolean;
  /** Milliseconds to wait for another process's lock. */
  readonly lockTimeout: number;
  /** Largest size of the file. */
  readonly maxBytes: number | undefined;
}

/** Why a sequence ended early; its earlier successes are in the results. */
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

/** Packs sequences into one message. */
export class AppendPacker {
  #numbers: number[] = [];
  #names: string[] = [];
  #texts: string[] = [];
  #size = 0;

  /** Number of sequences. */
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

  /** Everything added since the last call. */
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

/** The sequences of a message, unpacked one by one, so that waiting ones do not burden the garbage collector. */
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

  /** Number of sequences left. */
  get left(): number {
    return this.#left;
  }

  /** Characters of event data read so far. */
  get characters(): number {
    return this.#textAt;
  }

  /** The next sequence; there must be one. */
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

/** The port's expected revision as a number. */
export function expectedToNumber(expected: ExpectedRevision): number {
  return expected === 'none' ? NONE : expected === 'any' ? ANY : expected;
}

/** The port's expected revision from its number. */
export function expectedFromNumber(expected: number): ExpectedRevision {
  return expected === NONE ? 'none' : expected === ANY ? 'any' : expected;
}
