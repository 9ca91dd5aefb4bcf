import type { EncodedEvent, ExpectedRevision, RawEvent } from './event-store.ts';

/**
 * A whole log as it stands, to be moved: what exporting, importing and backing up ask of an engine. Events go through
 * as texts: nothing is checked, brought up to a newer version or written in another way on the road.
 */
export interface LogTransfer {
  /** What the engine is called in manifests. */
  readonly engine: LogEngine;

  /** Appends that are worth having under way at a time; 1 where one commit takes them all, in their order. */
  readonly sideBySide: number;

  /**
   * All that the log holds now, in its order, a part at a time; what is appended meanwhile is left out. Streams that
   * were cut off (truncated), or deleted as a whole, are told of as well as the engine knows them.
   *
   * @param wanted what all is not wanted for; default: everything
   * @throws EventStoreError `UNAVAILABLE`
   */
  contents(wanted?: WantedEvents): AsyncIterable<LogPart>;

  /**
   * Appends in order, each to its stream, durably. What stands there already by the same ids is passed by.
   * @throws EventStoreError as the port's `append`: `CONFLICT` carries where the stream really is
   */
  append(appends: readonly RawAppend[]): Promise<void>;

  /**
   * Makes a stream's next event have a revision, as if those before it had been there and were cut off. For streams
   * whose beginning is not moved, as it is gone.
   * @throws EventStoreError `UNAVAILABLE`
   */
  skipTo(stream: string, revision: number): Promise<void>;

  close(): Promise<void>;
}

export const logEngines = ['embedded', 'eventstoredb'] as const;
export type LogEngine = (typeof logEngines)[number];

/** Events that are looked for in a log. Others an engine leaves out where that spares it work, and gives where not. */
export interface WantedEvents {
  readonly types?: readonly string[] | undefined;
  /** What stands before the first `-` of a stream. */
  readonly kinds?: readonly string[] | undefined;
}

/** A part of a log. */
export interface LogPart {
  readonly events: readonly RawEvent[];
  /** Events that were gone through for it, also those that were left out. */
  readonly read: number;
  readonly truncations: readonly Truncation[];
  /** How much of the log has been read with this part, 0 to 1. */
  readonly share: number;
}

/** The events of a stream before a revision are gone, or are to be passed by where they are still there. */
export interface Truncation {
  readonly stream: string;
  readonly before: number;
}

/** An append of events as they stand. */
export interface RawAppend {
  readonly stream: string;
  readonly expected: Exclude<ExpectedRevision, 'any'>;
  readonly events: readonly EncodedEvent[];
}
