import { findingKinds, type FindingKind, type FoundOfKind } from './findings.ts';

/** What an audit found in its last pass, as every process can read it: text in the coordination store. */
export interface AuditReport {
  /** When the pass ended. */
  readonly at: string;
  /** How long it took, its rests included. */
  readonly seconds: number;
  /** Names of the checks that could not look. */
  readonly faults: readonly string[];
  readonly findings: Readonly<Partial<Record<FindingKind, FoundOfKind>>>;
}

/** Under which name the scheduler's last report is remembered. */
export const SCHEDULER_REPORT = 'scheduler-audit';

/** Under which name the last report of a worker that found something in its queue is remembered. */
export const QUEUE_REPORT = 'queue-audit';

/** Reads a remembered report; null for none, and for text that is none: it is disposable. */
export function parseReport(text: string | null): AuditReport | null {
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    return isReport(value) ? value : null;
  } catch {
    // Of another release, or cut: as good as none.
    return null;
  }
}

/** How many things of all kinds were found, and how many of them mended. */
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
