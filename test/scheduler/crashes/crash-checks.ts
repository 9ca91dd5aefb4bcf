import { toIso } from '../../../domain/clock.ts';
import type { RecordedEvent } from '../../../domain/event-store.ts';
import type { End, Kind } from './crash-kinds.ts';
import type { Seen } from './crash-process.ts';
import { START } from '../scheduler-world.ts';

/*
 * What must be true of the log after a crash, whichever process has died. The expectations come from the kind of task
 * alone, without the service's own schedules, policies or folds.
 */

const endings = ['RunSucceeded', 'RunFailed', 'RunCanceled', 'RunSkipped'];
const isEnding = ({ type }: RecordedEvent): boolean => endings.includes(type);

/** A cause that must have exactly one run: a fire of a task, or an event that triggers it. */
interface Owed {
  readonly cause: string;
  readonly due: number;
}

function owedBy(kind: Kind): readonly Owed[] {
  return Object.keys(kind.tasks).flatMap((task) =>
    kind.due.map((due) => ({ cause: `${task} of ${due}`, due })),
  );
}

/** The runs of a log that were not requested manually, each under its cause. */
function runsByCause(log: readonly RecordedEvent[]): Map<string, (readonly RecordedEvent[])[]> {
  const published = new Map<string, unknown>();
  const streams = new Map<string, RecordedEvent[]>();
  for (const event of log) {
    if (event.type === 'EventPublished') {
      published.set(event.data.event_id, event.data.payload['second']);
    }
    if (!event.stream.startsWith('run-')) continue;
    streams.set(event.stream, [...(streams.get(event.stream) ?? []), event]);
  }
  const runs = new Map<string, (readonly RecordedEvent[])[]>();
  for (const events of streams.values()) {
    const [first] = events;
    if (first?.type !== 'RunRequested' && first?.type !== 'RunSkipped') continue;
    const { trigger, task_id, scheduled_for } = first.data;
    if (trigger === 'manual') continue;
    const triggering = first.type === 'RunRequested' ? first.data.event : null;
    const due =
      triggering === null
        ? (Date.parse(scheduled_for ?? '') - START) / 1000
        : published.get(triggering.id);
    const cause = `${task_id} of ${String(due)}`;
    runs.set(cause, [...(runs.get(cause) ?? []), events]);
  }
  return runs;
}

/** Describes a run that is missing or unfinished. Undefined if there is none. */
export function leftToDo(kind: Kind, log: readonly RecordedEvent[]): string | undefined {
  const runs = runsByCause(log);
  for (const { cause } of owedBy(kind)) {
    const [events] = runs.get(cause) ?? [];
    if (events === undefined) return `${cause} has no run`;
    if (!events.some(isEnding)) return `the run of ${cause} is unfinished: ${events.at(-1)?.type}`;
  }
  return undefined;
}

/** All faults of a log in which all runs have ended. */
export function faultsOfLog(kind: Kind, log: readonly RecordedEvent[]): string[] {
  return [
    ...faultsOfFires(kind, log),
    ...faultsOfRuns(kind, log),
    ...(kind.exclusive ? faultsOfExclusion(log) : []),
    ...faultsOfSkips(log),
    ...faultsOfPayloads(log),
  ];
}

/** Each nominal time is decided once and fires, because the grace period covers every delay here. */
function faultsOfFires(kind: Kind, log: readonly RecordedEvent[]): string[] {
  return Object.keys(kind.tasks).flatMap((task) => {
    const fires = log.filter(({ stream }) => stream === `fires-${task}`);
    const found = fires.map((event) => (event.type === 'Fired' ? event.data.nominal : event.type));
    const wanted = kind.published ? [] : kind.due.map((due) => toIso(START + due * 1000));
    return String(found) === String(wanted) ? [] : [`the decisions of ${task} are ${found.join()}`];
  });
}

/** Each cause has one run. The run ends once, in an allowed way, and is executed by one process at a time. */
function faultsOfRuns(kind: Kind, log: readonly RecordedEvent[]): string[] {
  const faults: string[] = [];
  const runs = runsByCause(log);
  for (const { cause, due } of owedBy(kind)) {
    const found = runs.get(cause) ?? [];
    runs.delete(cause);
    if (found.length !== 1) faults.push(`${cause} has ${found.length} runs`);
    for (const events of found) {
      const ends = events.filter(isEnding);
      if (ends.length !== 1 || events.at(-1) !== ends[0]) {
        faults.push(`${cause}: ${events.map(({ type }) => type).join()}`);
      }
      const end = (ends[0]?.type.slice('Run'.length).toLowerCase() ?? 'none') as End;
      if (!kind.ends(due).includes(end)) faults.push(`${cause} has ${end}`);
      faults.push(...faultsOfStarts(events).map((fault) => `${cause}: ${fault}`));
    }
  }
  return [...faults, ...[...runs.keys()].map((cause) => `a run without a cause: ${cause}`)];
}

function faultsOfStarts(events: readonly RecordedEvent[]): string[] {
  let running = false;
  const faults: string[] = [];
  for (const { type, revision } of events) {
    if (type === 'RunStarted' && running) faults.push(`started while it was running (${revision})`);
    if (type === 'RunStarted') running = true;
    if (type === 'RunInterrupted' || type === 'RunAttemptFailed') running = false;
  }
  return faults;
}

/** No two runs are ever running at once. */
function faultsOfExclusion(log: readonly RecordedEvent[]): string[] {
  const faults: string[] = [];
  const running = new Set<string>();
  for (const event of log) {
    if (!event.stream.startsWith('run-')) continue;
    // An interrupted run counts as running, because it keeps its slot until it continues.
    if (event.type === 'RunStarted') running.add(event.stream);
    else if (isEnding(event) || event.type === 'RunAttemptFailed') running.delete(event.stream);
    if (running.size > 1)
      faults.push(`at ${event.position} ${[...running].join(' and ')} are running`);
  }
  return faults;
}

/** If a request lacks the payload of its event, the log has the payload once, before the request. */
function faultsOfPayloads(log: readonly RecordedEvent[]): string[] {
  return log.flatMap((event, index) => {
    if (event.type !== 'RunRequested' || event.data.event === null) return [];
    const { id, payload } = event.data.event;
    const stored = log.filter((each) => each.type === 'PayloadStored' && each.data.event_id === id);
    const [first] = stored;
    if (stored.length > 1) return [`the payload of ${id} is stored ${stored.length} times`];
    if (payload !== undefined) return first === undefined ? [] : [`${event.stream} has a copy`];
    const isThere = first !== undefined && log.indexOf(first) < index;
    return isThere ? [] : [`${event.stream} has no payload`];
  });
}

/** A run that was skipped because of another run names one that exists and, for an overlap, was unfinished. */
function faultsOfSkips(log: readonly RecordedEvent[]): string[] {
  return log.flatMap((event, index) => {
    if (event.type !== 'RunSkipped') return [];
    const { reason, because_of } = event.data;
    const other = log.filter(({ stream }) => stream === `run-${String(because_of)}`);
    if (other.length === 0)
      return [`${event.stream} is skipped because of a run that does not exist`];
    const over = log.slice(0, index).some((each) => other.includes(each) && isEnding(each));
    return reason === 'overlap' && over
      ? [`${event.stream} is skipped because of a run that had ended`]
      : [];
  });
}

/**
 * All calls of a step have the same idempotency key. A step is called at most once for each start of its run, at least
 * once if the run succeeds, and never after the log has its end.
 */
export function faultsOfSteps(log: readonly RecordedEvent[], seen: readonly Seen[]): string[] {
  const faults: string[] = [];
  const calls = new Map<string, number>();
  const keys = new Map<string, string>();
  const recorded = new Set<string>();
  for (const each of seen) {
    const step = `${each.run} ${each.step}`;
    if (each.kind === 'recorded') {
      recorded.add(step);
      continue;
    }
    if (recorded.has(step)) faults.push(`${step} is called after its end was recorded`);
    if ((keys.get(step) ?? each.key) !== each.key) faults.push(`${step} has two keys`);
    keys.set(step, each.key);
    calls.set(step, (calls.get(step) ?? 0) + 1);
  }
  if (new Set(keys.values()).size !== keys.size) faults.push('two steps share a key');
  for (const [step, count] of calls) {
    const stream = `run-${step.split(' ')[0]}`;
    const starts = log.filter((each) => each.stream === stream && each.type === 'RunStarted');
    if (count > starts.length) faults.push(`${step}: ${count} calls in ${starts.length} starts`);
  }
  for (const { stream, type } of log) {
    const run = stream.slice('run-'.length);
    if (type !== 'RunSucceeded' || [...calls.keys()].some((step) => step.startsWith(run))) continue;
    faults.push(`${run} has succeeded without a call`);
  }
  return faults;
}
