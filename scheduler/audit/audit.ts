import { toIso, type Instant } from '../../domain/clock.ts';
import { EventStoreError } from '../../domain/event-store.ts';
import type { DueIndex } from '../fires/due-index.ts';
import type { RunRequester } from '../fires/run-requester.ts';
import type { HoldView } from '../hold.ts';
import type { ProcessParts } from '../process-parts.ts';
import { Findings } from './findings.ts';
import type { AuditReport } from './report.ts';

/** The message that reports a failure. */
const NOT_PUBLISHED = 'could not publish the audit report';

/**
 * The pause between two passes, and before the first pass, because a process that has just started has other work.
 * Milliseconds.
 */
const INTERVAL = 60_000;
const FIRST_DELAY = 5000;

/** The names of the checks: the values of the label `check`. */
export const auditChecks = [
  'fires_have_runs',
  'index_agrees',
  'keys_have_runs',
  'next_fires_agree',
  'queue_agrees',
  'runs_have_workers',
  'tasks_are_decided',
] as const;

/** One check of an audit. It remembers its position, and each pass continues with a bounded part. */
export interface AuditCheck {
  /** One of {@link auditChecks}. */
  readonly name: string;
  /** Continues with the next part. @throws the error that prevented the check; the next pass tries again */
  run(findings: Findings, signal: AbortSignal): Promise<void>;
}

/** The dependencies of the scheduler's checks. */
export interface AuditParts extends Omit<ProcessParts, 'name'> {
  readonly index: DueIndex;
  readonly requester: RunRequester;
  /** This process, as the source of the repairs. */
  readonly source: string;
  /** Milliseconds that a worker's heartbeat lasts. */
  readonly lease: number;
  /** While the service is held, no task is late. Default: never held. */
  readonly hold?: HoldView;
}

/** Whether an event could not be read because it does not match its schema. */
export function isCorrupt(error: unknown): boolean {
  return error instanceof EventStoreError && error.code === 'CORRUPT_EVENT';
}

/**
 * Runs its checks every minute; they repair what they can and report the rest. A failed check does not prevent the
 * others. Each check does a bounded part of its work at a time and pauses in between, so that an audit costs little for
 * any amount of data.
 */
export class Audit {
  /** When the last pass without a failed check ended; null before the first such pass. */
  lastSuccess: Instant | null = null;
  readonly #options: ConstructorParameters<typeof Audit>[0];

  constructor(
    options: Pick<ProcessParts, 'clock' | 'telemetry'> & {
      readonly checks: readonly AuditCheck[];
      /** Whether this process has to run the checks now. */
      readonly isWanted: () => boolean;
      /** Publishes the report of a pass to all processes. */
      readonly publish: (report: AuditReport) => Promise<void>;
    },
  ) {
    this.#options = options;
  }

  /** Runs a pass every minute until the signal is aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, isWanted } = this.#options;
    for (let pause = FIRST_DELAY; !signal.aborted; pause = INTERVAL) {
      await clock.sleep(pause, signal).catch(() => {});
      if (!signal.aborted && isWanted()) await this.pass(signal);
    }
  }

  /** Runs each check once. Never rejects. */
  async pass(signal: AbortSignal): Promise<void> {
    const { checks, clock, telemetry, publish } = this.#options;
    const began = clock.now();
    const findings = new Findings(telemetry);
    const faults: string[] = [];
    for (const check of checks) {
      if (signal.aborted) return;
      const failure = `the audit could not check ${check.name}; retrying`;
      try {
        await check.run(findings, signal);
        telemetry.failures.worked(failure);
      } catch (error) {
        if (signal.aborted) return;
        faults.push(check.name);
        telemetry.count('scheduler_audit_faults_total', { check: check.name });
        telemetry.failures.failed(failure, error);
      }
    }
    const now = clock.now();
    const seconds = Math.max(0, now - began) / 1000;
    telemetry.observe('scheduler_audit_duration_seconds', seconds);
    if (faults.length === 0) this.lastSuccess = now;
    try {
      await publish({ at: toIso(now), seconds, faults, findings: findings.summary() });
      telemetry.failures.worked(NOT_PUBLISHED);
    } catch (error) {
      telemetry.failures.failed(NOT_PUBLISHED, error);
    }
  }
}
