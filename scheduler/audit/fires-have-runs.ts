import { MAX_CLOCK_SKEW, fromIso } from '../../domain/clock.ts';
import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';
import { streams } from '../../domain/streams.ts';
import { RUNS_REQUESTED_CHECKPOINT as REQUESTED } from '../fires/run-requester.ts';
import { isCorrupt, type AuditCheck, type AuditParts } from './audit.ts';
import type { Findings } from './findings.ts';
import { LogCursor } from './log-cursor.ts';

/** The position up to which every fire is known to have its run. */
const CHECKPOINT = 'fires-verified';

/** Fires younger than this are not checked, because their runs may still be requested. Milliseconds. */
const REQUEST_GRACE = 10_000;

/** Limits of one pass: pages of the log, runs that are looked up, and fires without a run that are retried. */
const MAX_PAGES = 240;
const MAX_READS = 3000;
const MAX_OPEN = 1000;

const READS_BEFORE_REST = 25;
const REST_MS = 10;

interface UnverifiedFire {
  readonly event: RecordedEvent;
  readonly runId: string;
  readonly before: Position;
}

/** Each `Fired` has its run, requested or recorded as skipped. Losing the position only costs reading again. */
export class FiresHaveRuns implements AuditCheck {
  readonly name = 'fires_have_runs';
  readonly #parts: AuditParts;
  readonly #log: LogCursor;
  #open: UnverifiedFire[] = [];

  constructor(parts: AuditParts) {
    this.#parts = parts;
    this.#log = new LogCursor(parts, CHECKPOINT, 'fires-');
  }

  async run(findings: Findings, signal: AbortSignal): Promise<void> {
    // Without a position, this starts at the position of the requester of runs, which has seen
    // every earlier fire.
    if (await this.#log.recall(REQUESTED)) this.#open = [];
    await this.#retryOpen(findings);
    await this.#advance(findings, signal);
    await this.#log.save(this.#open[0]?.before);
  }

  async #advance(findings: Findings, signal: AbortSignal): Promise<void> {
    const { requester, clock } = this.#parts;
    let reads = 0;
    await this.#log.advance(MAX_PAGES, signal, async (event) => {
      if (event.type !== 'Fired' || event.fault !== undefined) return true;
      const { run_id: runId } = event.data;
      if (this.#isYoung(event) || requester.isRequesting(runId)) return false;
      if (requester.isRequestedHere(runId)) return true;
      if (reads >= MAX_READS) return false;
      await this.#verify({ event, runId, before: this.#log.position }, findings);
      reads += 1;
      if (reads % READS_BEFORE_REST === 0) await clock.sleep(REST_MS, signal);
      return true;
    });
  }

  /** A fire further ahead than clocks can differ was written by a wrong clock. The check does not wait for its time. */
  #isYoung({ metadata }: RecordedEvent): boolean {
    const age = this.#parts.clock.now() - fromIso(metadata.occurredAt);
    return age < REQUEST_GRACE && age > -MAX_CLOCK_SKEW;
  }

  /** Retries the fires whose runs could not be requested. Fires that cannot be read now stay open. */
  async #retryOpen(findings: Findings): Promise<void> {
    const fires = this.#open;
    this.#open = [];
    let done = 0;
    try {
      for (const fire of fires) {
        await this.#verify(fire, findings);
        done += 1;
      }
    } finally {
      this.#open.push(...fires.slice(done));
    }
  }

  async #verify(fire: UnverifiedFire, findings: Findings): Promise<void> {
    const { store, requester } = this.#parts;
    const { event, runId } = fire;
    if (await hasRun(store, runId)) return;
    const fields: Record<string, unknown> = { stream: event.stream, revision: event.revision };
    try {
      await requester.requestMissingRun(event);
    } catch (error) {
      fields['error'] = error;
    }
    const mended = !('error' in fields) && (await hasRun(store, runId));
    if (!mended && this.#open.length < MAX_OPEN) this.#open.push(fire);
    findings.add('fire_without_run', runId, mended, fields);
  }
}

async function hasRun(store: EventStore, runId: string): Promise<boolean> {
  try {
    return (await store.readStream(streams.run(runId), { limit: 1 })).length > 0;
  } catch (error) {
    // The run exists, regardless of the content of its event.
    if (isCorrupt(error)) return true;
    throw error;
  }
}
