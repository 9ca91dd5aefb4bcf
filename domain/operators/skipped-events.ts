import type { Position } from '../event-store.ts';

/** An event that was left out of one document, by an operator's order, because it could not be folded. */
export interface SkippedEvent {
  /** The key of the document. */
  readonly key: string;
  readonly stream: string;
  /** The revision in its stream, which is the same in every store; null if unknown. */
  readonly revision: number | null;
  /** The position in the log of the store in which it was skipped. */
  readonly position: Position;
}

/** Skipped events, by {@link skippedEventKey}. */
export type SkippedEvents = ReadonlySet<string>;

/** Identifies a skipped event. */
export function skippedEventKey({ key, stream, revision, position }: SkippedEvent): string {
  return JSON.stringify([key, stream, revision ?? position]);
}

/** Whether to leave an event out of a document that can't fold it. */
export function isSkipped(
  skipped: SkippedEvents,
  key: string,
  event: Pick<SkippedEvent, 'stream' | 'position'> & { readonly revision: number },
): boolean {
  if (skipped.size === 0) return false;
  const { stream, revision, position } = event;
  return [revision, null].some((known) =>
    skipped.has(skippedEventKey({ key, stream, revision: known, position })),
  );
}
