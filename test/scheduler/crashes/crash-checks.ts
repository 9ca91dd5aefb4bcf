import { toIso } from '../../../domain/clock.ts';
import type { RecordedEvent } from '../../../domain/event-store.ts';
import type { End, Kind } from './crash-kinds.ts';
import type { Seen } from './crash-process.ts';
import { START } from '../scheduler-world.ts';

/*
 * What must hold of the log of a kind of task, whatever has died, worked out from the kind alone: no line of the
 * service's own schedules, policies or folds is in here.
 */

const endings = ['RunSucceeded', 'RunFailed', 'RunCanceled', 'RunSkipped'];
const isEnding = ({ type }: RecordedEvent): boolean => endings.includes(type);

/** One thing that must have one run: a fire of a task, or an event that a task listens to. */
interface Owed {
  readonly cause: string;
  readonly due: number;
}

function owedBy(kind: Kind): readonly Owed[] {
  return Object.keys(kind.tasks).flatMap((task) =>
    kind.due.map((due) => ({ cause: `${task} of ${due}`, due })),
  );
}

/** The runs of a log that nobody asked for by hand, each under what it is owed to. */
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

/** What is owed and not done, in words; undefined when all is. */
export function leftToDo(kind: Kind, log: readonly RecordedEvent[]): string | undefined {
  const runs = runsByCause(log);
  for (const { cause } of owedBy(kind)) {
    const [events] = runs.get(cause) ?? [];
    if (events === undefined) return `${cause} has no run`;
    if (!events.some(isEnding)) return `the run of ${cause} goes on: ${events.at(-1)?.type}`;
  }
  return undefined;
}

/** All that is wrong with a log in which nothing is left to do. */
export function faultsOfLog(kind: Kind, log: readonly RecordedEvent[]): string[] {
  return [
    ...faultsOfFires(kind, log),
    ...faultsOfRuns(kind, log),
    ...(kind.exclusive ? faultsOfExclusion(log) : []),
    ...faultsOfSkips(log),
    ...faultsOfPayloads(log),
  ];
}

/** Each nominal time is decided once, and as a fire: all that is late is still within its grace. */
function faultsOfFires(kind: Kind, log: readonly RecordedEvent[]): string[] {
  return Object.keys(kind.tasks).flatMap((task) => {
    const fires = log.filter(({ stream }) => stream === `fires-${task}`);
    const found = fires.map((event) => (event.type === 'Fired' ? event.data.nominal : event.type));
    const wanted = kind.published ? [] : kind.due.map((due) => toIso(START + due * 1000));
    return String(found) === String(wanted) ? [] : [`${task} has decided ${found.join()}`];
  });
}

/** Each is owed to one thing, has ended once, as it may, and was led by one at a time. */
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
    if (type === 'RunStarted' && running) faults.push(`is started while it runs (${revision})`);
    if (type === 'RunStarted') running = true;
    if (type === 'RunInterrupted' || type === 'RunAttemptFailed') running = false;
  }
  return faults;
}

/** No two runs were ever running at a time. */
function faultsOfExclusion(log: readonly RecordedEvent[]): string[] {
  const faults: string[] = [];
  const running = new Set<string>();
  for (const event of log) {
    if (!event.stream.startsWith('run-')) continue;
    // One that was interrupted keeps its place until it goes on.
    if (event.type === 'RunStarted') running.add(event.stream);
    else if (isEnding(event) || event.type === 'RunAttemptFailed') running.delete(event.stream);
    if (running.size > 1) faults.push(`at ${event.position} ${[...running].join(' and ')} run`);
  }
  return faults;
}

/** A payload that a request leaves out is in the log before the request, once. */
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

/** What did not run for another's sake names one that was requested, and (for an overlap) was not over. */
function faultsOfSkips(log: readonly RecordedEvent[]): string[] {
  return log.flatMap((event, index) => {
    if (event.type !== 'RunSkipped') return [];
    const { reason, because_of } = event.data;
    const other = log.filter(({ stream }) => stream === `run-${String(because_of)}`);
    if (other.length === 0) return [`${event.stream} is skipped because of nothing`];
    const over = log.slice(0, index).some((each) => other.includes(each) && isEnding(each));
    return reason === 'overlap' && over ? [`${event.stream} is skipped for one that is over`] : [];
  });
}

/**
 * A step is called under one key, at most once for each start of its run, at least once where its run has succeeded,
 * and never again once the log has its end.
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
  if (new Set(keys.values()).size !== keys.size) faults.push('two steps have one key');
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
