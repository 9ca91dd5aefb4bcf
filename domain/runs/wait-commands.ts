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
 * Ends a wait from outside. Of several calls, one wins.
 * @throws RefusalError `NOT_FOUND` where the run was removed; `STATE_CONFLICT` where the wait has ended, with how and when
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
 * Refuses a call that came after the wait's end, before anything is written for it.
 * @throws RefusalError as {@link endWaitCommand}
 */
export async function requireOpenWait(store: EventStore, wait: AnsweredWait): Promise<void> {
  const { state } = await load(store, streams.run(wait.run_id), runFold);
  const { waits } = requireRun(state);
  if (waits.some((each) => each.wait_id === wait.id && isOpen(each))) return;
  throw await tooLate(store, wait);
}

/** The refusal of a call that came after the wait's end. */
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
  timer: 'its time came',
  event: 'its event came',
  approval: 'an agent decided',
  run: 'the run it waited for ended',
  callback: 'its callback came',
  job: 'a worker ended it',
  timeout: 'it timed out',
  stopped: 'its run or attempt ended',
};

const PAGE = 1000;

/** The event that ended a wait. The state of an ended step no longer has it. */
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

/** A command's context whose reason, which is recorded, holds no secret. */
export function withMaskedReason(context: CommandContext, secrets: Secrets): CommandContext {
  const { reason } = context;
  return reason === undefined ? context : { ...context, reason: secrets.maskText(reason) };
}
