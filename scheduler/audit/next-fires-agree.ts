import { performance } from 'node:perf_hooks';
import { correctNextFire, ruleInForce, type FiresDecision } from '../../domain/tasks/fires.ts';
import { toNewEvents } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { nextFireOf, type FiringDefinition } from '../../domain/tasks/schedule-state.ts';
import { tzVersion } from '../../domain/schedule/zone.ts';
import { streams } from '../../domain/streams.ts';
import { tryAppend } from '../../domain/try-append.ts';
import { compileRule } from '../../domain/tasks/task-schedule.ts';
import type { DueEntry } from '../fires/due-index.ts';
import type { AuditCheck, AuditParts } from './audit.ts';
import type { Findings } from './findings.ts';

/** The name for storing the last release and tz database that checked every next fire. */
const REMEMBERED = 'tz-database';

/** Raised by a release that computes other fires from the same rule and tz database, to check all next fires once. */
const RULES_VERSION = 2;

/** Rules that one pass evaluates while nothing is known to have changed. */
const MAX_RULES = 2000;

/**
 * How long evaluation blocks the event loop (the last rule may exceed this), and how long it then pauses for other
 * work.
 */
const SLICE_MS = 4;
const REST_MS = 20;

/**
 * The next fire of each active task is the one that its rule gives, by this release and this process's tz database. A
 * wrong next fire is corrected at the expected revision. So a concurrent decision wins or loses the race, and no fire
 * is doubled or lost.
 *
 * After a change of the release or the tz database, the first pass checks all tasks. Each later pass checks some of
 * them.
 */
export class NextFiresAgree implements AuditCheck {
  readonly name = 'next_fires_agree';
  readonly #parts: AuditParts;
  /** The place where the last pass stopped; null at the beginning. */
  #entries: IterableIterator<DueEntry> | null = null;
  /** Whether all next fires were computed in the way of this process. */
  #isCurrent = false;

  constructor(parts: AuditParts) {
    this.#parts = parts;
  }

  async run(findings: Findings, signal: AbortSignal): Promise<void> {
    const { coordination, leadership, telemetry } = this.#parts;
    const icu = process.versions['icu'] ?? 'unknown';
    const now = `${tzVersion()}, ICU ${icu}, rules ${RULES_VERSION}`;
    if (!this.#isCurrent) {
      const before = await coordination.recall(REMEMBERED);
      this.#isCurrent = before === now;
      if (!this.#isCurrent) {
        const message =
          'checking every next fire: it was computed by another release or tz database';
        telemetry.log.info(message, { before, now });
        this.#entries = null;
      }
    }
    const ended = await this.#advance(this.#isCurrent ? MAX_RULES : Infinity, findings, signal);
    if (!ended || this.#isCurrent) return;
    await coordination.remember(REMEMBERED, now, leadership.fence);
    this.#isCurrent = true;
  }

  /** @returns whether all tasks were checked */
  async #advance(maxRules: number, findings: Findings, signal: AbortSignal): Promise<boolean> {
    const { index, leadership, clock } = this.#parts;
    const entries = (this.#entries ??= index.all());
    let evaluated = 0;
    let began = performance.now();
    for (let next = entries.next(); next.done !== true; next = entries.next()) {
      if (mayDiffer(next.value, this.#isCurrent)) {
        evaluated += 1;
        await this.#check(next.value, findings);
      }
      if (evaluated >= maxRules || signal.aborted || !leadership.leads) return false;
      if (performance.now() - began > SLICE_MS) {
        await clock.sleep(REST_MS, signal);
        began = performance.now();
      }
    }
    this.#entries = null;
    return true;
  }

  async #check(entry: DueEntry, findings: Findings): Promise<void> {
    const { store, clock, source } = this.#parts;
    const { taskId, state, compiled } = entry;
    let decision: FiresDecision;
    try {
      // Not cached, because the compiled rules of all tasks would take much memory.
      const { definition, anchor } = ruleInForce(state);
      const isCached = compiled?.definition === definition;
      const schedule = isCached ? compiled.schedule : compileRule(definition, anchor);
      decision = correctNextFire(taskId, state, schedule, clock.now());
    } catch (error) {
      // For example, this tz database lacks the time zone.
      findings.add('task_stuck', taskId, false, { reason: 'its rule cannot be evaluated', error });
      return;
    }
    const [event] = decision.events;
    if (event?.type !== 'NextFireCorrected' || entry.deciding) return;
    const before = nextFireOf(state);
    const { next_fire_at: after } = event.data;
    const kind = before === null ? 'no_fire_ahead' : 'next_fire_moved';
    const now = clock.now();
    const context = { commandId: newId(now), actor: 'service', source, correlationId: taskId, now };
    const stream = streams.fires(taskId);
    const events = toNewEvents(stream, decision.events, context);
    const appended = await tryAppend(store, stream, events, state.fires?.revision ?? 'none');
    // Null: the task was decided in the meantime, by the same rules.
    if (appended !== null) findings.add(kind, taskId, true, { before, after });
  }
}

/**
 * Whether evaluating the rule could give another next fire than the recorded one.
 * @param isCurrent whether all next fires were computed in the way of this process
 */
function mayDiffer({ state }: DueEntry, isCurrent: boolean): boolean {
  const { status, definition } = state;
  if (status !== 'active' || definition.schedule_kind === 'event') return false;
  return !isCurrent || nextFireOf(state) === null || !isInUtc(definition);
}

function isInUtc({ timezone, schedule_kind, schedule_expr }: FiringDefinition): boolean {
  // An rrule's DTSTART may name its own zone.
  const ownZone = schedule_kind === 'rrule' && (schedule_expr ?? '').includes('TZID');
  return !ownZone && /^(?:etc\/)?(?:utc|uct|gmt|zulu|universal)$/i.test(timezone);
}
