import type { RecordedEvent } from '../../domain/event-store.ts';
import { faultsOfFires } from '../support/expected-fires.ts';
import type { SentCommand } from './killing/command-load.ts';
import type { CreatedTask, Sharing } from './killing/kill-tasks.ts';
import { mayEndBy } from './sharing-checks.ts';
import { isEnding, type Ledger, type LoggedRun } from './ledger.ts';

/*
 * The invariants of a log, whatever was killed during its writes. Each function returns all
 * violations in words. They know the events, but not the code that writes them.
 */

/**
 * Streams count without gaps, and no event is in the log twice. Older events of keys are truncated.
 */
export function faultsOfStreams(ledger: Ledger): string[] {
  const faults: string[] = [];
  for (const [stream, events] of ledger.streams) {
    const first = stream.startsWith('key-') ? (events[0]?.revision ?? 0) : 0;
    events.forEach(({ revision, fault }, index) => {
      if (revision !== first + index)
        faults.push(`${stream}: revision ${revision} is at index ${index}`);
      if (fault !== undefined) faults.push(`${stream}: revision ${revision} is broken: ${fault}`);
    });
  }
  const ids = new Set(ledger.events.map(({ id }) => id));
  if (ids.size !== ledger.events.length) faults.push('an event id is in the log twice');
  return faults;
}

/** Each nominal time of each task is decided once, by its misfire policy. */
export function faultsOfSchedules(ledger: Ledger, tasks: readonly CreatedTask[]): string[] {
  return tasks.flatMap(({ id, name, createdAt, seconds }) =>
    seconds === undefined
      ? []
      : faultsOfFires({ ...seconds, createdAt }, ledger.fires(id)).map((f) => `${name}: ${f}`),
  );
}

/** Each fire and each triggered task has exactly one run, and each run has a cause. */
export function faultsOfCauses(ledger: Ledger): string[] {
  const expected = [
    ...ledger.all('Fired').map(({ stream, data }) => ({
      runId: data.run_id,
      cause: `${stream.slice('fires-'.length)} at ${data.nominal}`,
    })),
    ...ledger
      .all('EventPublished')
      .flatMap(({ data }) =>
        data.triggered_tasks.map((task) => ({ runId: null, cause: `${task} by ${data.event_id}` })),
      ),
  ];
  const runs = ledger.runs().filter(({ request }) => request.data.trigger !== 'manual');
  const causes = runs.map(({ id, eventId, request: { data } }) => ({
    id,
    cause: `${data.task_id} ${eventId === undefined ? `at ${data.scheduled_for}` : `by ${eventId}`}`,
  }));
  const faults = [
    ...twice(expected.map(({ cause }) => cause)).map((cause) => `${cause} is decided twice`),
    ...twice(causes.map(({ cause }) => cause)).map((cause) => `${cause} has two runs`),
  ];
  const runOf = new Map(causes.map(({ cause, id }) => [cause, id]));
  for (const { cause, runId } of expected) {
    const found = runOf.get(cause);
    if (found === undefined) faults.push(`${cause} has no run`);
    else if (runId !== null && found !== runId) faults.push(`${cause} has another run`);
    runOf.delete(cause);
  }
  return [...faults, ...[...runOf.keys()].map((cause) => `a run without a cause: ${cause}`)];
}

/** Each published event has triggered exactly the subscribed tasks. */
export function faultsOfTriggers(ledger: Ledger, tasks: readonly CreatedTask[]): string[] {
  const listening = (name: string): string => tasks.find((task) => task.name === name)?.id ?? '';
  return ledger.all('EventPublished').flatMap(({ data }) => {
    const wanted = [listening('all events')];
    if (data.topic.startsWith('orders.')) wanted.push(listening('orders'));
    const got = [...data.triggered_tasks].sort().join();
    return got === wanted.sort().join()
      ? []
      : [`${data.topic} at ${data.published_at} has triggered [${got}]`];
  });
}

/** Each run has ended once, as expected, and never had two workers at a time. */
export function faultsOfRuns(ledger: Ledger, tasks: readonly CreatedTask[]): string[] {
  return ledger.runs().flatMap((run) => {
    const task = tasks.find(({ id }) => id === run.request.data.task_id);
    return faultsOfRun(run, task?.attempts ?? 1, task?.shares).map(
      (f) => `run ${run.id} (${task?.name}): ${f}`,
    );
  });
}

/** Events with which a worker leaves a run that continues. */
const leftBy = new Set(['RunInterrupted', 'RunReleased', 'RunAttemptFailed']);

function faultsOfRun(
  { events, end }: LoggedRun,
  attempts: number,
  shares: Sharing | undefined,
): string[] {
  const faults: string[] = [];
  const endings = events.filter(isEnding);
  if (endings.length !== 1) faults.push(`has ended ${endings.length} times`);
  if (end !== undefined && events.at(-1) !== end) faults.push('has events after its end');
  let running = false;
  for (const event of events) {
    if (event.type === 'RunStarted') {
      if (running) faults.push(`started while it was running (revision ${event.revision})`);
      running = true;
    } else if (leftBy.has(event.type)) {
      running = false;
    }
  }
  if (end?.type === 'RunSkipped' && end.data.reason === 'paused') return faults;
  if (end !== undefined && mayEndBy(end, shares)) return faults;
  if (end?.type === 'RunSucceeded') {
    const wanted = attempts + attemptsLost(events);
    if (end.data.attempt !== wanted) {
      const failed = events.filter(({ type }) => type === 'RunAttemptFailed');
      const why = failed.map(({ data }) => JSON.stringify(data)).join(', ');
      faults.push(`has succeeded at attempt ${end.data.attempt}; failed before: ${why}`);
    }
  } else {
    faults.push(`has not succeeded: ${JSON.stringify(events.at(-1))}`);
  }
  return faults;
}

/** Attempts whose worker died repeatedly: the run resumes five times, and fails the sixth time. */
function attemptsLost(events: readonly RecordedEvent[]): number {
  let deaths = 0;
  let lost = 0;
  for (const event of events) {
    if (event.type === 'RunInterrupted' && event.data.cause === 'lease_expired') deaths += 1;
    if (event.type !== 'RunAttemptFailed') continue;
    if (deaths === 5 && event.data.step === null) lost += 1;
    deaths = 0;
  }
  return lost;
}

/**
 * A step is called at most once for each start of its run before its end was recorded. A call in
 * progress during a kill may be repeated; a recorded one may not.
 */
export function faultsOfSteps(ledger: Ledger, counts: ReadonlyMap<string, number>): string[] {
  const faults: string[] = [];
  const known = new Set<string>();
  for (const { id, events, end } of ledger.runs()) {
    if (end?.type !== 'RunSucceeded') continue;
    let starts = 0;
    for (const event of events) {
      if (event.type === 'RunStarted') starts += 1;
      const ended =
        event.type === 'RunStepCompleted'
          ? [event.data]
          : event.type === 'RunSucceeded'
            ? event.data.steps
            : [];
      for (const { step, status, result } of ended) {
        if (status !== 'succeeded' || !isAnswer(result)) continue;
        const key = `${id}:${step}`;
        if (known.has(key)) faults.push(`step ${key} is recorded twice`);
        known.add(key);
        const count = counts.get(key) ?? 0;
        if (count < 1 || count > starts) {
          faults.push(`step ${key} was called ${count} times in ${starts} starts`);
        }
      }
    }
  }
  return faults;
}

const isAnswer = (result: unknown): boolean =>
  typeof result === 'object' && result !== null && 'headers' in result;

/** Acknowledged commands were carried out once, others at most once. */
export function faultsOfCommands(ledger: Ledger, sent: readonly SentCommand[]): string[] {
  const found = new Map<string, string[]>();
  const note = (marker: unknown, id: string): void => {
    if (typeof marker !== 'string') return;
    found.set(marker, [...(found.get(marker) ?? []), id]);
  };
  for (const { data } of ledger.all('EventPublished')) note(data.payload['marker'], data.event_id);
  for (const { data, stream } of ledger.all('TaskCreated')) {
    note(data.definition.title, stream.slice('task-'.length));
  }
  for (const { id, request } of ledger.runs()) {
    if (request.data.trigger === 'manual') note(request.metadata.reason, id);
  }
  return sent.flatMap(({ marker, kind, keyed, id }) => {
    const ids = found.get(marker) ?? [];
    const wanted = id === null ? [] : [id];
    const about = `${marker} (${kind}, ${keyed ? 'with' : 'without'} a key)`;
    if (ids.length > 1) return [`${about} was carried out ${ids.length} times`];
    if (id !== null && ids[0] !== id)
      return [`${about} gave [${wanted.join()}], the log has [${ids.join()}]`];
    return [];
  });
}

function twice(items: readonly string[]): string[] {
  const seen = new Set<string>();
  return items.filter((item) => seen.has(item) || !seen.add(item));
}
