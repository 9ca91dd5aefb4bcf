import { toIso } from '../../../../domain/clock.ts';
import type { DataOf, DomainEvent } from '../../../../domain/events/catalogue.ts';
import { newId } from '../../../../domain/ids.ts';
import { streams } from '../../../../domain/streams.ts';
import type { RunningApi, SignedIn } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';

/** A run with one step that waits, as a worker leaves it. */
export interface WaitingRun {
  readonly task: string;
  readonly run: string;
  readonly wait: string;
  readonly stream: string;
}

export type WaitsFor = DataOf<'RunStepSuspended'>['waits_for'];

/** Requests a run and suspends its step `pay`. */
export async function waitingRun(
  api: RunningApi,
  waits_for: WaitsFor,
  payload: object = { pipeline: [{ id: 'pay', uses: 'echo' }] },
  { id, client }: SignedIn = api.admin,
): Promise<WaitingRun> {
  const task = (await client.post('/tasks', { ...plainTask(id), payload })).textAt('id');
  const run = (await client.post(`/tasks/${task}/run_now`)).textAt('details.run_id');
  const wait = newId(api.clock.now());
  const stream = streams.run(run);
  const now = api.clock.now();
  const started = { worker: 'w', attempt: 1, leased_until: toIso(now + 30_000) };
  const suspended = {
    step: 'pay',
    wait_id: wait,
    task_id: task,
    attempt: 1,
    waits_for,
    since: toIso(now),
    until: toIso(now + 3_600_000),
  };
  await api.append(stream, [
    { type: 'RunStarted', data: started },
    { type: 'RunStepSuspended', data: suspended },
    { type: 'RunReleased', data: { worker: 'w' } },
  ]);
  return { task, run, wait, stream };
}

/** The event that ends an unanswered wait. */
export const endedBy = (wait: string, kind: 'timeout' | 'stopped'): DomainEvent => ({
  type: 'RunStepResumed',
  data: { step: 'pay', wait_id: wait, by: { kind }, error: 'too late', retryable: false },
});
