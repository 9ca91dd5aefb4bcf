import { CLOCK_SKEW, fromIso, type Clock } from '../../domain/clock.ts';
import {
  BEGINNING,
  EventStoreError,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import { streams } from '../../domain/streams.ts';
import type { Coordination } from '../coordination.ts';
import type { Leadership } from '../processes/leadership.ts';
import { RememberedPosition } from '../processes/remembered-position.ts';
import { CHECKPOINT as REQUESTED } from '../fires/run-requester.ts';
import type { AuditCheck } from './audit.ts';
import type { Findings } from './findings.ts';
import { nextPage } from './log-page.ts';

/** Up to which position every fire is known to have its run. */
const CHECKPOINT = 'fires-verified';

/** The run of a younger fire may be under way. Milliseconds. */
const GRACE = 10_000;

/** Most fires of which the run is looked for in one pass; those known to this process cost nothing. */
const MOST_READS = 3000;

/** Most pages of the log read in one pass. */
const MOST_PAGES = 240;

/** Reads of streams, then a rest. */
const READS_AT_ONCE = 25;

/** Milliseconds. */
const REST = 10;

/** Fires whose run could not be made up that are looked at again with each pass. */
const MOST_OPEN = 1000;

interface Unverified {
  readonly event: RecordedEvent;
  readonly runId: string;
  readonly before: Position;
}

/**
 * Each `Fired` has its run: requested, or recorded as one that does not run. It follows the log from the last place
 * up to which that is known; losing that place costs reading again.
 */
export class FiresHaveRuns implements AuditCheck {
  readonly name = 'fires_have_runs';
  private readonly store: EventStore;
  private readonly coordination: Coordination;
  private readonly clock: Clock;
  private readonly leadership: Leadership;
  private readonly isUnderWay: (runId: string) => boolean;
  private readonly isRequested: (runId: string) => boolean;
  private readonly makeUp: (event: RecordedEvent) => Promise<void>;
  private fence: number | null = null;
  private readonly place: RememberedPosition;
  private verified: Position = BEGINNING;
  private open: Unverified[] = [];

  constructor(options: {
    readonly store: EventStore;
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly leadership: Leadership;
    /** Whether the scheduler of this process is requesting it: the audit waits there, and goes on with its next pass. */
    readonly isUnderWay: (runId: string) => boolean;
    /** Whether the scheduler of this process has requested it, and was answered that it stands in the log. */
    readonly isRequested: (runId: string) => boolean;
    /** Requests the run of a fire as it should have been. */
    readonly makeUp: (event: RecordedEvent) => Promise<void>;
  }) {
    this.store = options.store;
    this.coordination = options.coordination;
    this.place = new RememberedPosition(options.coordination, options.store, CHECKPOINT);
    this.clock = options.clock;
    this.leadership = options.leadership;
    this.isUnderWay = options.isUnderWay;
    this.isRequested = options.isRequested;
    this.makeUp = options.makeUp;
  }

  async look(findings: Findings, signal: AbortSignal): Promise<void> {
    const { fence } = this.leadership;
    if (fence !== this.fence) {
      this.verified = await this.recall();
      this.open = [];
      this.fence = fence;
    }
    await this.verifyOpen(findings);
    await this.goOn(findings, signal);
    await this.place.remember(this.open[0]?.before ?? this.verified, fence);
  }

  /** Where nothing is remembered, up to where the requester of runs has seen to it: it has looked at each fire. */
  private async recall(): Promise<Position> {
    const own = await this.place.recall();
    if (own !== BEGINNING) return own;
    return new RememberedPosition(this.coordination, this.store, REQUESTED).recall();
  }

  private async goOn(findings: Findings, signal: AbortSignal): Promise<void> {
    let reads = 0;
    for (let pages = 0; pages < MOST_PAGES && !signal.aborted; pages += 1) {
      const page = await nextPage(this.store, this.verified, ['fires-'], signal);
      this.place.came(page.events);
      for (const event of page.events) {
        if (event.type === 'Fired' && event.fault === undefined) {
          if (this.isYoung(event)) return;
          const { run_id: runId } = event.data;
          if (this.isUnderWay(runId)) return;
          if (!this.isRequested(runId)) {
            if (reads >= MOST_READS) return;
            await this.verify({ event, runId, before: this.verified }, findings);
            reads += 1;
            if (reads % READS_AT_ONCE === 0) await this.clock.sleep(REST, signal);
          }
        }
        this.verified = event.position;
      }
      this.verified = page.upTo;
      if (page.isEnd) return;
      await this.clock.sleep(REST, signal);
    }
  }

  /** What lies ahead by more than clocks differ was written by one that was wrong, and is not waited for. */
  private isYoung({ metadata }: RecordedEvent): boolean {
    const age = this.clock.now() - fromIso(metadata.occurredAt);
    return age < GRACE && age > -CLOCK_SKEW;
  }

  /** Once more those whose runs could not be made up. What can't be looked at now stays open. */
  private async verifyOpen(findings: Findings): Promise<void> {
    const again = this.open;
    this.open = [];
    let looked = 0;
    try {
      for (const each of again) {
        await this.verify(each, findings);
        looked += 1;
      }
    } finally {
      this.open.push(...again.slice(looked));
    }
  }

  private async verify(fire: Unverified, findings: Findings): Promise<void> {
    if (await this.hasRun(fire.runId)) return;
    let problem: unknown = null;
    try {
      await this.makeUp(fire.event);
    } catch (error) {
      problem = error;
    }
    const mended = problem === null && (await this.hasRun(fire.runId));
    if (!mended && this.open.length < MOST_OPEN) this.open.push(fire);
    findings.add('fire_without_run', fire.runId, mended, {
      stream: fire.event.stream,
      revision: fire.event.revision,
      ...(problem === null ? {} : { error: problem }),
    });
  }

  private async hasRun(runId: string): Promise<boolean> {
    try {
      return (await this.store.readStream(streams.run(runId), { limit: 1 })).length > 0;
    } catch (error) {
      // It is there, whatever it says.
      if (error instanceof EventStoreError && error.code === 'CORRUPT_EVENT') return true;
      throw error;
    }
  }
}
