import type { RecordedEvent } from '../../domain/event-store.ts';

/**
 * What a task that is due at whole seconds should have done, computed separately. It uses no code
 * of the service's schedules or misfire policy. Times are milliseconds since 1970.
 */
export interface SecondsTask {
  /** When it was created: the first fire is strictly after. */
  readonly createdAt: number;
  /** Which seconds of a minute (`cron` with a first field, and `*` in all others). */
  readonly isDue: (second: number) => boolean;
  readonly misfire: 'skip' | 'latest' | 'all';
  readonly graceSeconds: number;
}

/** Maximum runs of one decision; the next decision handles the rest of the backlog. */
const MAX_RUNS_PER_DECISION = 100;

/** The nominal times of a task after one instant, up to and including another. */
export function nominalTimes(task: SecondsTask, after: number, upTo: number): number[] {
  const times: number[] = [];
  for (let at = (Math.floor(after / 1000) + 1) * 1000; at <= upTo; at += 1000) {
    if (task.isDue((at / 1000) % 60)) times.push(at);
  }
  return times;
}

/** The last nominal time that a stream `fires-<task>` has decided; undefined for none. */
export function decidedUpTo(fires: readonly RecordedEvent[]): number | undefined {
  const ends = fires.flatMap((event) => {
    if (event.type === 'Fired') return [Date.parse(event.data.nominal)];
    return event.type === 'FiresSkipped' ? [Date.parse(event.data.to)] : [];
  });
  return ends.length === 0 ? undefined : Math.max(...ends);
}

/**
 * Checks a whole stream `fires-<task>`, and describes all errors. Each nominal time since the
 * creation must be decided exactly once and in order, by the misfire policy at the time of the
 * decision.
 */
export function faultsOfFires(task: SecondsTask, fires: readonly RecordedEvent[]): string[] {
  const faults: string[] = [];
  let decided = task.createdAt;
  for (const decision of decisionsOf(fires)) {
    const owed = nominalTimes(task, decided, decision.now);
    faults.push(...faultsOfDecision(task, owed, decision));
    decided = Math.max(decided, ...decision.ran, ...decision.skipped.map(({ to }) => to));
  }
  return faults;
}

/** The events of one append: one decision, made at one time. */
interface Decision {
  readonly now: number;
  readonly ran: readonly number[];
  readonly skipped: readonly {
    readonly from: number;
    readonly to: number;
    readonly count: number;
    readonly reason: string;
  }[];
}

function decisionsOf(fires: readonly RecordedEvent[]): Decision[] {
  const byCommand = new Map<string, RecordedEvent[]>();
  for (const event of fires) {
    const { commandId } = event.metadata;
    byCommand.set(commandId, [...(byCommand.get(commandId) ?? []), event]);
  }
  return [...byCommand.values()].map((events) => ({
    now: Date.parse(events[0]?.metadata.occurredAt ?? ''),
    ran: events.flatMap((event) =>
      event.type === 'Fired' ? [Date.parse(event.data.nominal)] : [],
    ),
    skipped: events.flatMap((event) => {
      if (event.type !== 'FiresSkipped') return [];
      const { from, to, count, reason } = event.data;
      return [{ from: Date.parse(from), to: Date.parse(to), count, reason }];
    }),
  }));
}

function faultsOfDecision(
  { misfire, graceSeconds }: SecondsTask,
  owed: readonly number[],
  { now, ran, skipped }: Decision,
): string[] {
  const faults: string[] = [];
  const say = (fault: string): void => {
    faults.push(`decided at ${iso(now)}: ${fault}`);
  };
  // No fire is decided at its exact time: less than a second is never late.
  const late = owed.filter((at) => at < now - Math.max(graceSeconds * 1000, 999));
  const inTime = owed.filter((at) => !late.includes(at));
  const lateOnes = { skip: 0, latest: inTime.length === 0 ? 1 : 0, all: MAX_RUNS_PER_DECISION }[
    misfire
  ];
  const toRun = [...(lateOnes === 0 ? [] : late.slice(-lateOnes)), ...inTime];
  const wanted = toRun.slice(0, MAX_RUNS_PER_DECISION);
  if (String(ran) !== String(wanted)) {
    say(`ran [${ran.map(iso).join()}], though ${misfire} asks for [${wanted.map(iso).join()}]`);
  }
  const covered = skipped.flatMap(({ from, to, count, reason }) => {
    const within = owed.filter((at) => at >= from && at <= to);
    if (within.length !== count) say(`recorded ${count} skipped fires instead of ${within.length}`);
    if (reason !== 'missed') say(`skipped as ${reason}`);
    return within;
  });
  const unwanted = owed.filter((at) => !toRun.includes(at));
  if (String(covered) !== String(unwanted)) {
    const [is, should] = [covered, unwanted].map((times) => times.map(iso).join());
    say(`recorded [${is}] as not run instead of [${should}]`);
  }
  return faults;
}

const iso = (at: number): string => new Date(at).toISOString();
