import type {
  EncodedEvent,
  EventStoreErrorCode,
  ExpectedRevision,
} from '../../../../domain/event-store.ts';

/** Requests to the writer thread. */
export type WriterRequest =
  | { readonly kind: 'appends'; readonly sequences: readonly WriteSequence[] }
  | {
      readonly kind: 'truncate';
      readonly ticket: number;
      readonly stream: string;
      readonly before: number;
    }
  /** See `burst/rehearsal.ts`. Answered by `done`. */
  | {
      readonly kind: 'rehearse';
      readonly ticket: number;
      readonly sequences: readonly WriteSequence[];
    }
  | { readonly kind: 'ping'; readonly ticket: number }
  | { readonly kind: 'close' };

export interface WriteSequence {
  readonly ticket: number;
  readonly appends: readonly WriteAppend[];
}

export interface WriteAppend {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly EncodedEvent[];
}

export type WriterAnswer =
  | { readonly kind: 'ready' }
  /** The thread could not open the log, and ends. */
  | { readonly kind: 'refused'; readonly message: string; readonly incompatible: boolean }
  /** A transaction has ended, durably. */
  | ({ readonly kind: 'appended' } & Written)
  | { readonly kind: 'done'; readonly ticket: number }
  | { readonly kind: 'failed'; readonly ticket: number; readonly failure: WriteFailure }
  /** A harmless fault that should be logged. */
  | { readonly kind: 'warning'; readonly message: string };

/** The outcome of one transaction. */
export interface Written {
  /** The events' creation time in milliseconds since 1970. */
  readonly createdAt: number;
  /** The results in written order. */
  readonly results: readonly SequenceResult[];
  readonly timing: CommitTiming;
}

export interface SequenceResult {
  readonly ticket: number;
  readonly appended: readonly WrittenAppend[];
  /** Why it ended early. */
  readonly failure: WriteFailure | undefined;
}

/** Revision and position belong to the last event. */
export interface WrittenAppend {
  readonly revision: number;
  readonly position: number;
  readonly duplicate: boolean;
}

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

/** Why an append or a truncation failed, as in the port's error. */
export interface WriteFailure {
  readonly code: EventStoreErrorCode;
  readonly message: string;
  readonly stream?: string;
  readonly expected?: ExpectedRevision;
  readonly actual?: number | 'none';
}

/** Milliseconds. */
export interface CommitTiming {
  readonly waitedForLock: number;
  readonly writing: number;
}
