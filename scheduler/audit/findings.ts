import type { Telemetry } from '../../observability/telemetry.ts';

/** The kinds of findings: the values of the label `kind`. docs/how-to/alerts.md explains them. */
export const findingKinds = [
  'fire_without_run',
  'task_overdue',
  'task_stuck',
  'no_fire_ahead',
  'next_fire_moved',
  'task_missing',
  'task_behind',
  'task_left',
  'key_without_run',
  'run_of_gone_worker',
  'run_missing',
  'run_behind',
  'run_left',
] as const;
export type FindingKind = (typeof findingKinds)[number];

/** Names that the report and the log give of each kind. */
const MAX_NAMES = 5;

/** The findings of one kind in one pass. */
export interface FindingSummary {
  readonly found: number;
  /** How many of them were repaired. */
  readonly mended: number;
  /** The first few: ids of tasks or runs, names of keys. */
  readonly names: readonly string[];
}

/** Collects the findings of a pass, and reports each as a metric and in the log. */
export class Findings {
  readonly #telemetry: Telemetry;
  readonly #kinds = new Map<FindingKind, { found: number; mended: number; names: string[] }>();

  constructor(telemetry: Telemetry) {
    this.#telemetry = telemetry;
  }

  /**
   * Adds a finding.
   * @param name of the task, run or key
   * @param mended whether it was repaired
   * @param fields for the log
   */
  add(
    kind: FindingKind,
    name: string,
    mended: boolean,
    fields: Readonly<Record<string, unknown>> = {},
  ): void {
    const known = this.#kinds.get(kind) ?? { found: 0, mended: 0, names: [] };
    this.#kinds.set(kind, known);
    known.found += 1;
    if (mended) known.mended += 1;
    if (known.names.length < MAX_NAMES) {
      known.names.push(name);
      const message = mended
        ? 'audit repaired a problem'
        : 'audit found a problem it cannot repair';
      this.#telemetry.log.warn(message, { kind, name, ...fields });
    }
    this.#telemetry.count('scheduler_audit_findings_total', { kind });
    if (mended) this.#telemetry.count('scheduler_audit_mended_total', { kind });
  }

  summary(): Readonly<Partial<Record<FindingKind, FindingSummary>>> {
    return Object.fromEntries(this.#kinds);
  }
}
