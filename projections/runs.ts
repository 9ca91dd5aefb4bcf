import type { RecordedEvent } from '../domain/event-store.ts';
import type { DataOf, StepEnd } from '../domain/events/catalogue.ts';
import type { JsonObject, JsonValue } from '../domain/json.ts';
import { idOf } from '../domain/streams.ts';
import type { RunSkipReason, RunState, RunTrigger } from '../domain/vocabulary.ts';
import type { Projection } from './read-model.ts';

/**
 * A run as the API shows it, and what a worker needs to pick it up. The states are those of
 * `domain/run.ts`. An event of type `Abandoned` makes no run.
 */
export type RunDocument = JsonObject & {
  readonly id: string;
  readonly task_id: string;
  /** The task's owner. */
  readonly created_by: string;
  /** The worker that has it; of an ended run the one that had it last; null while nobody has. */
  readonly lease_owner: string | null;
  /** As the start says; renewals are not events. */
  readonly leased_until: string | null;
  /** Of the first attempt. */
  readonly started_at: string | null;
  readonly finished_at: string | null;
  /** null until it has ended, and for canceled and skipped runs. */
  readonly success: boolean | null;
  /** Of the run, or of the latest attempt that failed; null for a run that succeeded. */
  readonly error: string | null;
  /** The latest; 0 before the first start. */
  readonly attempt: number;
  /** null until it has ended. */
  readonly output: JsonObject | null;
  readonly created_at: string;
  readonly state: RunState;
  readonly trigger: RunTrigger;
  /** Nominal time; null for a run by hand or by event. */
  readonly scheduled_for: string | null;
  /** When it may start (again). */
  readonly run_at: string;
  readonly queued_at: string;
  readonly priority: number;
  readonly task_revision: number;
  readonly retry_of: string | null;
  readonly skip_reason: RunSkipReason | null;
  readonly attempts: readonly RunAttempt[];
  /** In the order of their ends; those taken over from the run that this one retries come first. */
  readonly steps: readonly RunStep[];
  readonly log: readonly JsonObject[];
  /** Of the last event of `run-<id>`: what the next append expects. */
  readonly revision: number;
  /** How often a worker's lease ran out in the midst of the present attempt. */
  readonly interruptions: number;
  readonly cancel_requested: boolean;
  /** Whether lists show it that do not ask for skipped runs. */
  readonly listed: boolean;
};

export type RunAttempt = JsonObject & {
  readonly attempt: number;
  /** The latest to work on it. */
  readonly worker: string;
  readonly started_at: string;
  readonly finished_at: string | null;
  readonly outcome: 'succeeded' | 'failed' | 'canceled' | null;
  readonly error: string | null;
  /** The step that failed. */
  readonly step: string | null;
};

export type RunStep = JsonObject & Omit<StepEnd, 'log'>;

/** Every run, from its request (or the record that it did not run) on. */
export const runsProjection: Projection<RunDocument> = {
  name: 'runs',
  schema: 1,
  streams: ['run-'],
  fields: {
    listed: 'boolean',
    task_id: 'text',
    state: 'text',
    trigger: 'text',
    queued_at: 'text',
    started_at: 'text',
  },
  // Each costs on the path of every run, so there is one for each kind of list and no more: all runs, a
  // task's runs (and its latest), those in a state (and what workers load), those that started in a span.
  indexes: [
    ['listed', 'queued_at'],
    ['task_id', 'listed', 'queued_at'],
    ['state', 'queued_at'],
    ['listed', 'started_at'],
  ],
  keys: (event) => [idOf(event.stream)],
  evolve: evolveRunDocument,
};

function evolveRunDocument(
  run: RunDocument | null,
  event: RecordedEvent,
  id: string,
): RunDocument | null {
  const { occurredAt } = event.metadata;
  if (event.type === 'RunRequested') {
    const { run_at, retry_of, prior_steps } = event.data;
    const asked = requested(id, event.data, occurredAt);
    return { ...asked, run_at, retry_of, steps: prior_steps.map(stepOf), state: 'queued' };
  }
  if (event.type === 'RunSkipped') {
    const { revision } = event;
    const asked = run ?? requested(id, event.data, occurredAt);
    const skipped = { state: 'skipped', skip_reason: event.data.reason, listed: false } as const;
    return { ...asked, ...skipped, finished_at: occurredAt, revision };
  }
  return run === null ? null : evolveKnown({ ...run, revision: event.revision }, event, occurredAt);
}

function requested(
  id: string,
  data: DataOf<'RunSkipped'> | DataOf<'RunRequested'>,
  at: string,
): RunDocument {
  const { task_id, task_revision, created_by, trigger, scheduled_for, priority } = data;
  return {
    id,
    task_id,
    created_by,
    lease_owner: null,
    leased_until: null,
    started_at: null,
    finished_at: null,
    success: null,
    error: null,
    attempt: 0,
    output: null,
    created_at: at,
    state: 'queued',
    trigger,
    scheduled_for,
    run_at: scheduled_for ?? at,
    queued_at: at,
    priority,
    task_revision,
    retry_of: null,
    skip_reason: null,
    attempts: [],
    steps: [],
    log: [],
    revision: 0,
    interruptions: 0,
    cancel_requested: false,
    listed: true,
  };
}

function evolveKnown(run: RunDocument, event: RecordedEvent, at: string): RunDocument {
  switch (event.type) {
    case 'RunStarted':
      return started(run, event.data, at);
    case 'RunStepCompleted':
      return withSteps(run, [event.data]);
    case 'RunInterrupted': {
      const gone = event.data.cause === 'lease_expired' ? 1 : 0;
      return { ...run, ...free, state: 'queued', interruptions: run.interruptions + gone };
    }
    case 'RunAttemptFailed': {
      const { error, step, retry_at } = event.data;
      const attempts = attemptEnded(run, { outcome: 'failed', finished_at: at, error, step });
      return { ...run, ...free, state: 'retrying', run_at: retry_at, error, attempts };
    }
    case 'RunSucceeded': {
      const { steps, output } = event.data;
      const end = { outcome: 'succeeded', finished_at: at, error: null, step: null } as const;
      const ended = {
        finished_at: at,
        attempts: attemptEnded(run, end),
        output: output as JsonObject,
      };
      return { ...withSteps(run, steps), ...ended, state: 'succeeded', success: true, error: null };
    }
    case 'RunFailed': {
      const { steps, output, error, step } = event.data;
      const end = { outcome: 'failed', finished_at: at, error, step } as const;
      const ended = {
        finished_at: at,
        attempts: attemptEnded(run, end),
        output: output as JsonObject,
      };
      return { ...withSteps(run, steps), ...ended, state: 'failed', success: false, error };
    }
    case 'RunCancelRequested':
      return { ...run, cancel_requested: true };
    case 'RunCanceled': {
      const end = { outcome: 'canceled', finished_at: at, error: null, step: null } as const;
      return { ...run, state: 'canceled', finished_at: at, attempts: attemptEnded(run, end) };
    }
    default:
      return run;
  }
}

const free = { lease_owner: null, leased_until: null };

/** An interrupted attempt goes on as itself, under another worker. */
function started(run: RunDocument, data: DataOf<'RunStarted'>, at: string): RunDocument {
  const { worker, attempt, leased_until } = data;
  const goesOn = run.attempts.at(-1)?.attempt === attempt;
  const attempts = goesOn
    ? run.attempts.map((each) => (each.attempt === attempt ? { ...each, worker } : each))
    : [...run.attempts, { ...freshAttempt, attempt, worker, started_at: at }];
  return {
    ...run,
    state: 'running',
    lease_owner: worker,
    leased_until,
    started_at: run.started_at ?? at,
    attempt,
    attempts,
    interruptions: attempt === run.attempt ? run.interruptions : 0,
  };
}

const freshAttempt = { finished_at: null, outcome: null, error: null, step: null };

/** The latest attempt with how it ended; one that ended before stays as it is. */
function attemptEnded(
  run: RunDocument,
  end: Pick<RunAttempt, 'outcome' | 'finished_at' | 'error' | 'step'>,
): readonly RunAttempt[] {
  const last = run.attempts.at(-1);
  return last === undefined || last.outcome !== null
    ? run.attempts
    : [...run.attempts.slice(0, -1), { ...last, ...end }];
}

function withSteps(run: RunDocument, ended: readonly StepEnd[]): RunDocument {
  if (ended.length === 0) return run;
  const lines = ended.flatMap((step) => step.log) as unknown as readonly JsonObject[];
  const log = lines.length === 0 ? run.log : [...run.log, ...lines];
  return { ...run, steps: [...run.steps, ...ended.map(stepOf)], log };
}

function stepOf(end: StepEnd): RunStep {
  const { log: _log, ...step } = end;
  // What came out of the log is JSON, whatever the schema leaves open.
  return step as typeof step & { readonly result: JsonValue };
}
