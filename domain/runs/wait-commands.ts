import { RefusalError } from '../errors.ts';
import type { EventStore, RecordedEvent } from '../event-store.ts';
import { handle, load, type CommandContext, type Handled } from '../handle.ts';
import type { Secrets } from '../pipeline/secrets.ts';
import { streams } from '../streams.ts';
import type { ResumedBy } from '../vocabulary.ts';
import { requireRun, runFold, type RunState } from './run.ts';
import { isOpen, resumeStep, type Resumption } from './run-waits.ts';

/** A wait that a call from outside ends. */
export interface AnsweredWait {
  readonly id: string;
  readonly run_id: string;
  readonly step: string;
}

/**
 * Ends a wait on a call from outside. If there are several calls, one wins.
 * @throws RefusalError `NOT_FOUND` if the run was removed; `STATE_CONFLICT` if the wait has ended, with the cause and
 *   the time
 */
export async function endWaitCommand(
  store: EventStore,
  wait: AnsweredWait,
  resumption: Resumption,
  context: CommandContext,
): Promise<Handled<RunState>> {
  const stream = streams.run(wait.run_id);
  try {
    return await handle({
      store,
      stream,
      fold: runFold,
      admit: requireRun,
      decide: (state) => [resumeStep(requireRun(state).waits, wait.id, resumption)],
      context,
    });
  } catch (error) {
    if (!(error instanceof RefusalError) || error.code !== 'STATE_CONFLICT') throw error;
    throw await tooLate(store, wait);
  }
}

/**
 * Rejects a call that came after the wait's end, before anything is written for it.
 * @throws RefusalError as {@link endWaitCommand}
 */
export async function requireOpenWait(store: EventStore, wait: AnsweredWait): Promise<void> {
  const { state } = await load(store, streams.run(wait.run_id), runFold);
  const { waits } = requireRun(state);
  if (waits.some((each) => each.wait_id === wait.id && isOpen(each))) return;
  throw await tooLate(store, wait);
}

/** The error for a call that came after the wait's end. */
async function tooLate(store: EventStore, wait: AnsweredWait): Promise<RefusalError> {
  const end = await endOf(store, wait);
  const by = end?.data.by;
  const details = {
    run_id: wait.run_id,
    step: wait.step,
    resumed_by: by?.kind ?? null,
    agent_id: by?.agent_id ?? null,
    at: end?.metadata.occurredAt ?? null,
  };
  const why = by === undefined ? 'its run has ended' : endings[by.kind];
  const at = end === null ? '' : ` at ${end.metadata.occurredAt}`;
  return new RefusalError('STATE_CONFLICT', `the step no longer waits: ${why}${at}`, details);
}

type Resumed = Extract<RecordedEvent, { readonly type: 'RunStepResumed' }>;

const endings: Readonly<Record<ResumedBy, string>> = {
  timer: 'its time had come',
  event: 'its event arrived',
  approval: 'an agent decided',
  run: 'the run it waited for ended',
  callback: 'its callback arrived',
  job: 'a worker completed it',
  timeout: 'it timed out',
  stopped: 'its run or attempt ended',
};

const PAGE = 1000;

/** The event that ended a wait, which the state of an ended step no longer contains. */
async function endOf(store: EventStore, { id, run_id }: AnsweredWait): Promise<Resumed | null> {
  let from = 0;
  for (;;) {
    const page = await store.readStream(streams.run(run_id), { from, limit: PAGE });
    for (const event of page) {
      if (event.type === 'RunStepResumed' && event.data.wait_id === id) return event;
      from = event.revision + 1;
    }
    if (page.length < PAGE) return null;
  }
}

/** A command's context with secrets masked in its reason, which is recorded. */
export function withMaskedReason(context: CommandContext, secrets: Secrets): CommandContext {
  const { reason } = context;
  return reason === undefined ? context : { ...context, reason: secrets.maskText(reason) };
}
