/** Under which name the progress of the replay at hand is remembered between processes. */
export const REPLAY_REPORT = 'replay-progress';

/** How far the replay is that is being made: disposable, and a moment old. */
export interface ReplayProgress {
  /** ISO 8601. */
  readonly at: string;
  readonly name: string;
  readonly version: number;
  /** The view of it that is being made. */
  readonly view: string;
  /** Events folded into that view since the projector began. */
  readonly handled: number;
  /** 0..1, over all of its views. */
  readonly progress: number;
  readonly events_per_second: number;
}

/** Reads a remembered report; null for none, and for text that is none. */
export function parseReplayProgress(text: string | null): ReplayProgress | null {
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    return isProgress(value) ? value : null;
  } catch {
    // Of another release, or cut: as good as none.
    return null;
  }
}

function isProgress(value: unknown): value is ReplayProgress {
  if (typeof value !== 'object' || value === null) return false;
  const { at, name, version, progress } = value as Record<string, unknown>;
  return (
    typeof at === 'string' &&
    typeof name === 'string' &&
    typeof version === 'number' &&
    typeof progress === 'number'
  );
}
