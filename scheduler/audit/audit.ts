import { toIso, type Clock, type Instant } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { Findings } from './findings.ts';
import type { AuditReport } from './report.ts';

/** Milliseconds from one pass to the next. */
const EVERY = 60_000;

/** Before the first pass after a start: who has just come has its own work to do first. Milliseconds. */
const FIRST_AFTER = 5000;

/** What audits look at; the value of the label `check`. */
export const auditChecks = [
  'fires_have_runs',
  'index_agrees',
  'keys_have_runs',
  'next_fires_agree',
  'queue_agrees',
  'runs_have_workers',
  'tasks_are_decided',
] as const;

/** One thing that an audit looks at. It remembers where it was: each pass goes on with a bounded part. */
export interface AuditCheck {
  /** For the log and for `/health`. */
  readonly name: string;
  /** Goes on for a part. @throws whatever kept it from looking: it is tried again with the next pass */
  look(findings: Findings, signal: AbortSignal): Promise<void>;
}

/**
 * Looks every minute whether all is as it should be, mends what is not, and says so. A fault of one check keeps no
 * other from its look. Every check does a bounded part of its work at a time and gives way to others in between,
 * so that an audit costs little however much there is to look at.
 */
export class Audit {
  /** When the last pass ended in which every check could look; null before. */
  lastSuccess: Instant | null = null;
  private readonly checks: readonly AuditCheck[];
  private readonly clock: Clock;
  private readonly telemetry: Telemetry;
  private readonly isWanted: () => boolean;
  private readonly publish: (report: AuditReport) => Promise<void>;

  constructor(options: {
    readonly checks: readonly AuditCheck[];
    readonly clock: Clock;
    readonly telemetry: Telemetry;
    /** Whether this process is the one to look now. */
    readonly isWanted: () => boolean;
    /** Tells the report of a pass to all processes. */
    readonly publish: (report: AuditReport) => Promise<void>;
  }) {
    this.checks = options.checks;
    this.clock = options.clock;
    this.telemetry = options.telemetry;
    this.isWanted = options.isWanted;
    this.publish = options.publish;
  }

  /** Passes every minute until the signal is aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    for (let pause = FIRST_AFTER; !signal.aborted; pause = EVERY) {
      await this.clock.sleep(pause, signal).catch(() => {});
      if (!signal.aborted && this.isWanted()) await this.pass(signal);
    }
  }

  /** One look of every check. Never rejects. */
  async pass(signal: AbortSignal): Promise<void> {
    const began = this.clock.now();
    const findings = new Findings(this.telemetry);
    const faults: string[] = [];
    for (const check of this.checks) {
      if (signal.aborted) return;
      try {
        await check.look(findings, signal);
      } catch (error) {
        if (signal.aborted) return;
        faults.push(check.name);
        this.telemetry.count('scheduler_audit_faults_total', { check: check.name });
        this.telemetry.log.warn('a part of the audit could not look; it tries again', {
          check: check.name,
          error,
        });
      }
    }
    const now = this.clock.now();
    const seconds = Math.max(0, now - began) / 1000;
    this.telemetry.observe('scheduler_audit_duration_seconds', seconds);
    if (faults.length === 0) this.lastSuccess = now;
    try {
      await this.publish({ at: toIso(now), seconds, faults, findings: findings.summary() });
    } catch (error) {
      this.telemetry.log.warn('the report of the audit could not be told', { error });
    }
  }
}
