import { toIso } from '../../domain/clock.ts';
import type { StreamAppend } from '../../domain/event-store.ts';
import { catalogue, type DomainEvent } from '../../domain/events/catalogue.ts';
import { nameBasedId } from '../../domain/ids.ts';
import { appendAll, withLog } from '../log.ts';

/** RunRequested, RunStarted and RunSucceeded. */
export const EVENTS_PER_RUN = 3;

/** Runs whose events are interleaved. */
const OVERLAP = 64;

/** Writes a log with the given number of runs into an empty folder. */
export const writeRunLog = (directory: string, runs: number): Promise<void> =>
  withLog(directory, (store) => appendAll(store, runAppends(runs), 500));

/** The events of runs with one step each. */
export function* runAppends(runs: number): Generator<StreamAppend> {
  for (let at = 0; at < runs + OVERLAP * (EVENTS_PER_RUN - 1); at += 1) {
    for (let turn = 0; turn < EVENTS_PER_RUN; turn += 1) {
      const run = at - turn * OVERLAP;
      if (run < 0 || run >= runs) continue;
      const stream = `run-${nameBasedId('bench', String(run))}`;
      yield appendOf(stream, turn, eventOf(run, turn), timeOf(run, turn));
    }
  }
}

/** One event as an append. */
export function appendOf(
  stream: string,
  revision: number,
  event: DomainEvent,
  occurredAt: string,
): StreamAppend {
  const id = nameBasedId('bench', stream, String(revision));
  const schemaVersion = String(catalogue[event.type].version);
  const origin = { actor: 'service', source: 'bench', $correlationId: id, commandId: id };
  const metadata = { ...origin, schemaVersion, occurredAt };
  const expected = revision === 0 ? 'none' : revision - 1;
  return { stream, expected, events: [{ ...event, id, metadata }] };
}

function eventOf(run: number, turn: number): DomainEvent {
  const task_id = nameBasedId('bench task', String(run % 1_000));
  const started_at = timeOf(run, 1);
  if (turn === 0) {
    const scheduled_for = timeOf(run, 0);
    return {
      type: 'RunRequested',
      data: {
        task_id,
        task_revision: 0,
        trigger: 'schedule',
        scheduled_for,
        priority: 5,
        run_at: scheduled_for,
        event: null,
        retry_of: null,
        prior_steps: [],
        created_by: nameBasedId('bench agent', String(run % 50)),
        overlap_policy: 'allow',
      },
    };
  }
  if (turn === 1) {
    const data = { worker: 'worker-1', attempt: 1, leased_until: timeOf(run + 30, 1) };
    return { type: 'RunStarted', data };
  }
  const step = {
    step: 'step_0',
    status: 'succeeded' as const,
    result: { number: run },
    error: null,
    started_at,
    finished_at: timeOf(run, 2),
    attempt: 1,
    log: [],
  };
  const summary = { total_steps: 1, executed_steps: 1, skipped_steps: 0 };
  const output = { steps: { step_0: { number: run } }, summary };
  return { type: 'RunSucceeded', data: { task_id, started_at, attempt: 1, steps: [step], output } };
}

/** When an event of a run occurred; a run starts each second. */
export function timeOf(run: number, turn: number): string {
  return toIso(1_767_225_600_000 + run * 1_000 + turn * 200);
}
