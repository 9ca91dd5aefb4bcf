import type { ProjectionStatus } from './projection-status.ts';

/** Under which name the projector's report is remembered between processes. */
export const PROJECTION_REPORT = 'projections';

/** How the views are, as the projector has said last: disposable, and a moment old. */
export interface ProjectionReport {
  /** ISO 8601. */
  readonly at: string;
  readonly views: readonly ProjectionStatus[];
}

/** Reads a remembered report; null for none, and for text that is none. */
export function parseProjectionReport(text: string | null): ProjectionReport | null {
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    return isReport(value) ? value : null;
  } catch {
    // Of another release, or cut: as good as none.
    return null;
  }
}

function isReport(value: unknown): value is ProjectionReport {
  if (typeof value !== 'object' || value === null) return false;
  const { at, views } = value as Record<string, unknown>;
  return typeof at === 'string' && Array.isArray(views);
}
