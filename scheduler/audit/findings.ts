import type { Telemetry } from '../../observability/telemetry.ts';

/** What an audit may find; the value of the label `kind`. docs/how-to/alerts.md says what each means. */
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

/** Names of what was found that are kept for people, of each kind. */
const MOST_NAMES = 5;

/** What one pass of an audit has found of one kind. */
export interface FoundOfKind {
  readonly found: number;
  /** How many of them are as they should be again. */
  readonly mended: number;
  /** The first few: ids of tasks or runs, names of keys. */
  readonly names: readonly string[];
}

/** Collects what one pass finds, and tells it: as metrics at once, in the log by the line. */
export class Findings {
  private readonly telemetry: Telemetry;
  private readonly kinds = new Map<
    FindingKind,
    { found: number; mended: number; names: string[] }
  >();

  constructor(telemetry: Telemetry) {
    this.telemetry = telemetry;
  }

  /**
   * Something was not as it should be.
   * @param name of the task, run or key
   * @param mended whether it is as it should be now
   * @param fields for the log
   */
  add(
    kind: FindingKind,
    name: string,
    mended: boolean,
    fields: Readonly<Record<string, unknown>> = {},
  ): void {
    const known = this.kinds.get(kind) ?? { found: 0, mended: 0, names: [] };
    this.kinds.set(kind, known);
    known.found += 1;
    if (mended) known.mended += 1;
    if (known.names.length < MOST_NAMES) {
      known.names.push(name);
      const message = mended ? 'the audit has mended' : 'the audit has found what it can not mend';
      this.telemetry.log.warn(message, { kind, name, ...fields });
    }
    this.telemetry.count('scheduler_audit_findings_total', { kind });
    if (mended) this.telemetry.count('scheduler_audit_mended_total', { kind });
  }

  get isEmpty(): boolean {
    return this.kinds.size === 0;
  }

  /** What was found, by kind. */
  summary(): Readonly<Partial<Record<FindingKind, FoundOfKind>>> {
    return Object.fromEntries(this.kinds);
  }
}
