import { performance } from 'node:perf_hooks';
import type { Clock } from '../../domain/clock.ts';
import { isConflict, type EventStore } from '../../domain/event-store.ts';
import { correctNextFire, ruleInForce, type FiresDecision } from '../../domain/tasks/fires.ts';
import { toNewEvents } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { nextFireOf, type FiringDefinition } from '../../domain/tasks/rhythm.ts';
import { tzVersion } from '../../domain/schedule/zone.ts';
import { streams } from '../../domain/streams.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Coordination } from '../coordination.ts';
import { compileRule, type DueEntry, type DueIndex } from '../fires/due-index.ts';
import type { Leadership } from '../processes/leadership.ts';
import type { AuditCheck } from './audit.ts';
import type { Findings } from './findings.ts';

/** By which tz database every next fire was looked at last. */
const REMEMBERED = 'tz-database';

/**
 * How this release computes fires. A release that finds others for the same rule and the same tz database raises it, so
 * that all next fires are looked at once after an upgrade.
 */
const RULES = 2;

/** Rules evaluated in one pass while nothing is known to have changed. */
const MOST_RULES = 2000;

/** Evaluating holds the event loop for so long at most, and one rule's evaluation more. Milliseconds. */
const SLICE = 4;

/** After a slice. Milliseconds: after a change of the tz database others still get most of the processor. */
const REST = 20;

/**
 * The next fire of each active task stands where its rule says, by this release and the tz database of this process; and a task without
 * one has none. Where it does not it is corrected, with the revision that was seen: who decides at the same time
 * wins or loses the race, and no fire is doubled or lost.
 *
 * After a start with another tz database, or a release that computes fires otherwise, all tasks are looked at in the
 * first pass; else some with each.
 * Losing the memory of which one it was costs looking at all.
 */
export class NextFiresAgree implements AuditCheck {
  readonly name = 'next_fires_agree';
  private readonly store: EventStore;
  private readonly coordination: Coordination;
  private readonly index: DueIndex;
  private readonly clock: Clock;
  private readonly leadership: Leadership;
  private readonly telemetry: Telemetry;
  private readonly source: string;
  /** Where the last pass has stopped; null at the beginning. */
  private going: IterableIterator<DueEntry> | null = null;
  private isKnown = false;

  constructor(options: {
    readonly store: EventStore;
    readonly coordination: Coordination;
    readonly index: DueIndex;
    readonly clock: Clock;
    readonly leadership: Leadership;
    readonly telemetry: Telemetry;
    /** This process, as the source of what it appends. */
    readonly source: string;
  }) {
    this.store = options.store;
    this.coordination = options.coordination;
    this.index = options.index;
    this.clock = options.clock;
    this.leadership = options.leadership;
    this.telemetry = options.telemetry;
    this.source = options.source;
  }

  async look(findings: Findings, signal: AbortSignal): Promise<void> {
    const present = computedBy();
    if (!this.isKnown) {
      const remembered = await this.coordination.recall(REMEMBERED);
      this.isKnown = remembered === present;
      if (!this.isKnown) {
        const fields = { before: remembered, now: present };
        this.telemetry.log.info(
          'checking every next fire: it was computed by another release or tz database',
          fields,
        );
        this.going = null;
      }
    }
    const ended = await this.goOn(this.isKnown ? MOST_RULES : Infinity, findings, signal);
    if (!ended || this.isKnown) return;
    await this.coordination.remember(REMEMBERED, present, this.leadership.fence);
    this.isKnown = true;
  }

  /** @returns whether all tasks were looked at */
  private async goOn(most: number, findings: Findings, signal: AbortSignal): Promise<boolean> {
    const entries = (this.going ??= this.index.all());
    let evaluated = 0;
    let began = performance.now();
    for (let next = entries.next(); ; next = entries.next()) {
      if (next.done === true) break;
      if (mayDiffer(next.value, this.isKnown)) {
        evaluated += 1;
        await this.lookAt(next.value, findings);
      }
      if (evaluated >= most || signal.aborted || !this.leadership.leads) return false;
      if (performance.now() - began > SLICE) {
        await this.clock.sleep(REST, signal);
        began = performance.now();
      }
    }
    this.going = null;
    return true;
  }

  private async lookAt(entry: DueEntry, findings: Findings): Promise<void> {
    const { taskId, rhythm } = entry;
    let decision: FiresDecision;
    try {
      // Not kept: the compiled rules of all tasks would take much memory.
      const { compiled } = entry;
      const rule = ruleInForce(rhythm);
      const isKept = compiled?.definition === rule.definition;
      const schedule = isKept ? compiled.schedule : compileRule(rule);
      decision = correctNextFire(taskId, rhythm, schedule, this.clock.now());
    } catch (error) {
      // A zone, say, that this tz database does not have.
      const reason = 'its rule can not be evaluated';
      findings.add('task_stuck', taskId, false, { reason, error });
      return;
    }
    const [event] = decision.events;
    if (event?.type !== 'NextFireCorrected' || entry.deciding) return;
    const before = nextFireOf(rhythm);
    const { next_fire_at: after } = event.data;
    const kind = before === null ? 'no_fire_ahead' : 'next_fire_moved';
    const now = this.clock.now();
    const base = { commandId: newId(now), actor: 'service', source: this.source, now };
    const stream = streams.fires(taskId);
    const events = toNewEvents(stream, decision.events, { ...base, correlationId: taskId });
    try {
      await this.store.append(stream, events, rhythm.fires?.revision ?? 'none');
      findings.add(kind, taskId, true, { before, after });
    } catch (error) {
      // It is being decided: that goes by the same rules.
      if (!isConflict(error)) throw error;
    }
  }
}

/** What the fires of this process are computed by. */
function computedBy(): string {
  return `${tzVersion()}, ICU ${process.versions['icu'] ?? 'unknown'}, rules ${RULES}`;
}

/**
 * Whether a look at the rule could find another next fire than the one that stands.
 * @param isKnown whether all were computed as this process does
 */
function mayDiffer({ rhythm }: DueEntry, isKnown: boolean): boolean {
  const { status, definition } = rhythm;
  if (status !== 'active' || definition.schedule_kind === 'event') return false;
  return !isKnown || nextFireOf(rhythm) === null || !isInUtc(definition);
}

function isInUtc({ timezone, schedule_kind, schedule_expr }: FiringDefinition): boolean {
  // An rrule's DTSTART may name a zone of its own.
  const ownZone = schedule_kind === 'rrule' && (schedule_expr ?? '').includes('TZID');
  return !ownZone && /^(?:etc\/)?(?:utc|uct|gmt|zulu|universal)$/i.test(timezone);
}
