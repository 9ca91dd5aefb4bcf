import type { Position } from '../event-store.ts';

/** An event that an operator had left out of one document, as it could not be folded. */
export interface SkippedEvent {
  /** Of the document. */
  readonly key: string;
  readonly stream: string;
  /** In its stream, which stays the same in every store; null where that was not known. */
  readonly revision: number | null;
  /** In the log of the store in which it was skipped. */
  readonly position: Position;
}

/** Events that were left out, by {@link placeOfSkipped}. */
export type SkippedEvents = ReadonlySet<string>;

/** What tells one such event from any other. */
export function placeOfSkipped({ key, stream, revision, position }: SkippedEvent): string {
  return JSON.stringify([key, stream, revision ?? position]);
}

/** Whether an event is to be left out of a document where it can't be folded. */
export function isSkipped(
  skipped: SkippedEvents,
  key: string,
  event: {
    readonly stream: string;
    readonly revision: number;
    readonly position: Position;
  },
): boolean {
  if (skipped.size === 0) return false;
  const { stream, revision, position } = event;
  return [revision, null].some((known) =>
    skipped.has(placeOfSkipped({ key, stream, revision: known, position })),
  );
}
