import type { EncodedEvent, ExpectedRevision, RawEvent } from './event-store.ts';

/**
 * The operations of an engine that export, import and backup need. Events are moved as strings, without validation,
 * upcasting or rewriting.
 */
export interface LogTransfer {
  /** The engine's name in manifests. */
  readonly engine: LogEngine;

  /** The most concurrent appends that are worthwhile; 1 if one commit takes all of them in order. */
  readonly sideBySide: number;

  /**
   * The present log in order, in parts; later appends are left out. Includes truncated and deleted streams as far as
   * the engine knows them.
   * @param wanted default: all events
   * @throws EventStoreError `UNAVAILABLE`
   */
  contents(wanted?: WantedEvents): AsyncIterable<LogPart>;

  /**
   * Appends durably and in order, each to its stream. Skips events whose ids the stream already has.
   * @throws EventStoreError as `EventStore.append`
   */
  append(appends: readonly RawAppend[]): Promise<void>;

  /**
   * Sets the revision of a stream's next event, as if earlier events had been truncated: for streams whose beginning is
   * gone and can't be moved.
   * @throws EventStoreError `UNAVAILABLE`
   */
  skipTo(stream: string, revision: number): Promise<void>;

  close(): Promise<void>;
}

export const logEngines = ['embedded', 'eventstoredb'] as const;
export type LogEngine = (typeof logEngines)[number];

/** A filter. An engine applies it if that saves work, and may return other events too. */
export interface WantedEvents {
  readonly types?: readonly string[] | undefined;
  /** The part of a stream's name before the first `-`. */
  readonly kinds?: readonly string[] | undefined;
}

/** A part of a log. */
export interface LogPart {
  readonly events: readonly RawEvent[];
  /** The number of events read for this part, including those that were filtered out. */
  readonly read: number;
  readonly truncations: readonly Truncation[];
  /** How much of the log has been read with this part, 0 to 1. */
  readonly share: number;
}

/** The events of a stream before a revision are gone, or to be ignored. */
export interface Truncation {
  readonly stream: string;
  readonly before: number;
}

/** An append of encoded events. */
export interface RawAppend {
  readonly stream: string;
  readonly expected: Exclude<ExpectedRevision, 'any'>;
  readonly events: readonly EncodedEvent[];
}
