import { findingKinds, type FindingKind, type FindingSummary } from './findings.ts';

/** The result of the last pass, for all processes: a string in the coordination store. */
export interface AuditReport {
  /** When the pass ended. */
  readonly at: string;
  /** Duration of the pass, its rests included. */
  readonly seconds: number;
  /** Names of the checks that failed. */
  readonly faults: readonly string[];
  readonly findings: Readonly<Partial<Record<FindingKind, FindingSummary>>>;
}

/** The name of the scheduler's last report. */
export const SCHEDULER_REPORT = 'scheduler-audit';

/** The name of the last report of a worker that found something in its queue. */
export const QUEUE_REPORT = 'queue-audit';

/** Reads a stored report; null for none, and for one that is malformed or of another release. */
export function parseReport(text: string | null): AuditReport | null {
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    return isReport(value) ? value : null;
  } catch {
    return null;
  }
}

/** How many problems of all kinds were found, and how many of these were repaired. */
export function totals(report: AuditReport): { readonly found: number; readonly mended: number } {
  const all = findingKinds.flatMap((kind) => report.findings[kind] ?? []);
  return {
    found: all.reduce((sum, { found }) => sum + found, 0),
    mended: all.reduce((sum, { mended }) => sum + mended, 0),
  };
}

function isReport(value: unknown): value is AuditReport {
  if (typeof value !== 'object' || value === null) return false;
  const { at, seconds, faults, findings } = value as Record<string, unknown>;
  if (typeof at !== 'string' || typeof seconds !== 'number' || !Array.isArray(faults)) return false;
  return typeof findings === 'object' && findings !== null;
}
