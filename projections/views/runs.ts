import type { RecordedEvent } from '../../domain/event-store.ts';
import type { DataOf, RequestedEvent, RunEvent, StepEnd } from '../../domain/events/catalogue.ts';
import { depthOf } from '../../domain/events/metadata.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { evolveSlimWaits, mayContinue, noWaits, type Wait } from '../../domain/runs/run-waits.ts';
import { idOf } from '../../domain/streams.ts';
import type { RunSkipReason, RunState, RunTrigger } from '../../domain/vocabulary.ts';
import type { Projection } from '../read-model.ts';

/**
 * A run as the API shows it, with the fields that a worker needs to pick it up. The states are those of
 * `domain/runs/run.ts`. An event `Abandoned` creates no run.
 */
export type RunDocument = JsonObject & {
  readonly id: string;
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly task_id: string;
  readonly created_by: string;
  /** The worker that has it; for an ended run, the last one; null if none. */
  readonly lease_owner: string | null;
  /** As of the start, because renewals are not events. */
  readonly leased_until: string | null;
  /** The start of the first attempt. */
  readonly started_at: string | null;
  readonly finished_at: string | null;
  /** null until it has ended, and for canceled and skipped runs. */
  readonly success: boolean | null;
  /** The error of the run, or of its latest failed attempt; null for a run that succeeded. */
  readonly error: string | null;
  /** Number of the latest attempt; 0 before the first start. */
  readonly attempt: number;
  readonly output: JsonObject | null;
  readonly created_at: string;
  readonly state: RunState;
  readonly trigger: RunTrigger;
  /** Nominal time; null for a run started by hand or by an event. */
  readonly scheduled_for: string | null;
  /** The earliest time of its start or restart. */
  readonly run_at: string;
  readonly queued_at: string;
  readonly priority: number;
  readonly task_revision: number;
  /** Override the task's defaults, key by key; null: the run has only the defaults. */
  readonly params: JsonObject | null;
  /** The event that triggered it, as in its request; null for other triggers. */
  readonly event: (JsonObject & RequestedEvent) | null;
  readonly retry_of: string | null;
  /** The depth of the chain of runs, each causing the next, that led to this one; left out for 0. */
  readonly depth?: number;
  /** The run that waits for this one's end; left out if there is none. */
  readonly parent_run_id?: string;
  /** The latest run that retries this failed one. */
  readonly retried_by: string | null;
  readonly skip_reason: RunSkipReason | null;
  readonly attempts: readonly RunAttempt[];
  /** In the order of their ends. Steps taken over from the retried run come first. */
  readonly steps: readonly RunStep[];
  /** How many steps are reused from another run, including those still to be copied; left out for 0. */
  readonly reused?: number;
  readonly log: readonly JsonObject[];
  /** The revision of the last event of `run-<id>`, which the next append expects. */
  readonly revision: number;
  /** How often a worker's lease expired during the current attempt. */
  readonly interruptions: number;
  readonly cancel_requested: boolean;
  /** Its suspended steps, without arguments, logs or results; left out if there are none. */
  readonly waits?: readonly (JsonObject & Wait)[];
  /** Whether it is in lists that do not ask for skipped runs. */
  readonly listed: boolean;
};

export type RunAttempt = JsonObject & {
  readonly attempt: number;
  /** The latest worker of the attempt. */
  readonly worker: string;
  readonly started_at: string;
  readonly finished_at: string | null;
  readonly outcome: 'succeeded' | 'failed' | 'canceled' | null;
  readonly error: string | null;
  readonly step: string | null;
};

export type RunStep = JsonObject & Omit<StepEnd, 'log'>;

/** Every run, from its request or the record that it was skipped. */
export const runsProjection: Projection<RunDocument> = {
  name: 'runs',
  schema: 7,
  // Schema 6 cannot be filtered by namespace. Schema 5 cannot be filtered by parent. Schema 4 has no waiting runs,
  // depths and parents, and lacks `params` and `event`, which are then shown as null. Schema 3 has other indexes too,
  // which make some lists slower.
  readsOlder: [3, 4, 5, 6],
  addedFields: { parent_run_id: 6, namespace: 7 },
  streams: ['run-'],
  ownStreams: true,
  fields: {
    namespace: 'text',
    listed: 'boolean',
    task_id: 'text',
    state: 'text',
    trigger: 'text',
    queued_at: 'text',
    started_at: 'text',
    parent_run_id: 'text',
  },
  // Each index costs a write on the path of every run. So each kind of list has only one: the runs
  // of a parent (few runs have one); all runs; a task's runs (and its latest); runs in a state
  // (also loaded by workers); runs in a state that started in a span. Indexes with a namespace cost
  // nothing in `default`.
  indexes: [
    ['parent_run_id', 'queued_at'],
    ['listed', 'queued_at'],
    ['task_id', 'listed', 'queued_at'],
    ['state', 'queued_at'],
    ['state', 'started_at'],
    ['namespace', 'listed', 'queued_at'],
    ['namespace', 'task_id', 'listed', 'queued_at'],
    ['namespace', 'state', 'queued_at'],
    ['namespace', 'state', 'started_at'],
  ],
  // The trigger never changes, so covering it costs little. The other fields are covered in the task's index because a
  // task may have a million runs; they change in place.
  covered: [
    [],
    ['trigger', 'namespace'],
    ['trigger', 'state', 'started_at', 'namespace'],
    ['trigger', 'namespace'],
    ['trigger', 'namespace'],
    ['trigger'],
    ['trigger', 'state', 'started_at'],
    ['trigger'],
    ['trigger'],
  ],
  sparse: ['started_at', 'parent_run_id', 'namespace'],
  tallies: [
    {
      fields: ['namespace', 'state', 'trigger', 'listed'],
      nullable: ['namespace'],
      hourOf: 'started_at',
    },
  ],
  isFinal: ({ finished_at }) => finished_at !== null,
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
    const { run_at, retry_of, prior_steps, prior_results } = event.data;
    const asked = requested(id, event.data, event.metadata);
    const reused = prior_results?.steps ?? prior_steps.length;
    const steps = prior_steps.map(stepOf);
    // The value comes from the log and is JSON, but its type does not say so.
    const cause = event.data.event as RunDocument['event'];
    const queued = { ...asked, run_at, event: cause, retry_of, steps, state: 'queued' } as const;
    return reused === 0 ? queued : { ...queued, reused };
  }
  if (event.type === 'RunSkipped') {
    const { revision } = event;
    const asked = run ?? {
      ...requested(id, event.data, event.metadata),
      retry_of: event.data.retry_of ?? null,
    };
    const skipped = { state: 'skipped', skip_reason: event.data.reason, listed: false } as const;
    return { ...asked, ...skipped, finished_at: occurredAt, revision };
  }
  if (event.type === 'RunRemoved') return null;
  return run === null ? null : evolveKnown(run, event, occurredAt);
}

function requested(
  id: string,
  data: DataOf<'RunSkipped'> | DataOf<'RunRequested'>,
  metadata: RecordedEvent['metadata'],
): RunDocument {
  const { occurredAt: at } = metadata;
  const { task_id, task_revision, created_by, trigger, scheduled_for, priority } = data;
  const { params, parent, namespace } = data;
  const document: RunDocument = {
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
    params: (params ?? null) as JsonObject | null,
    event: null,
    retry_of: null,
    retried_by: null,
    skip_reason: null,
    attempts: [],
    steps: [],
    log: [],
    revision: 0,
    interruptions: 0,
    cancel_requested: false,
    listed: true,
  };
  const depth = depthOf(metadata);
  const placed = namespace === undefined ? document : { ...document, namespace };
  const deep = depth === 0 ? placed : { ...placed, depth };
  return parent === undefined ? deep : { ...deep, parent_run_id: parent.run_id };
}

/** One copy per event, with a single spread that comes first, because other forms are six times slower. */
function evolveKnown(run: RunDocument, event: RecordedEvent, at: string): RunDocument {
  const { revision } = event;
  switch (event.type) {
    case 'RunStarted':
      return started(run, event.data, event);
    case 'RunStepCompleted': {
      const { steps, log } = withSteps(run, [event.data]);
      return withWaits({ ...run, steps, log, revision }, event);
    }
    case 'RunStepSuspended':
      return withWaits({ ...run, revision }, event);
    case 'RunStepProgressed': {
      const log = run.log.concat((event.data.log ?? []) as readonly JsonObject[]);
      return withWaits({ ...run, log, revision }, event);
    }
    case 'RunStepResumed': {
      const resumed = withWaits({ ...run, revision }, event);
      const continues = run.state === 'waiting' && mayContinue(resumed.waits ?? noWaits);
      return continues ? { ...resumed, state: 'queued' } : resumed;
    }
    case 'RunReleased': {
      const state = mayContinue(run.waits ?? noWaits) ? 'queued' : 'waiting';
      return { ...run, lease_owner: null, leased_until: null, state, revision };
    }
    case 'RunInterrupted': {
      const interruptions = run.interruptions + (event.data.cause === 'lease_expired' ? 1 : 0);
      const lease = {
        state: run.state === 'retrying' ? 'retrying' : 'queued',
        interruptions,
      } as const;
      return { ...run, lease_owner: null, leased_until: null, ...lease, revision };
    }
    case 'RunAttemptFailed': {
      const { error, step, retry_at: run_at } = event.data;
      const attempts = attemptEnded(run, { outcome: 'failed', finished_at: at, error, step });
      const changes = { state: 'retrying', run_at, error, attempts } as const;
      const free = { ...run, lease_owner: null, leased_until: null, ...changes, revision };
      return withWaits(free, event);
    }
    case 'RunSucceeded': {
      const end = { ...event.data, state: 'succeeded', error: null, step: null } as const;
      return withWaits(ended(run, end, event), event);
    }
    case 'RunFailed':
      return withWaits(ended(run, { ...event.data, state: 'failed' }, event), event);
    case 'RunCancelRequested':
      return { ...run, cancel_requested: true, revision };
    case 'RunCanceled': {
      const end = { outcome: 'canceled', finished_at: at, error: null, step: null } as const;
      const attempts = attemptEnded(run, end);
      const output = (event.data.output ?? null) as JsonObject | null;
      const canceled = { ...run, state: 'canceled', finished_at: at, output, attempts } as const;
      return withWaits({ ...canceled, revision }, event);
    }
    case 'RunRetried':
      return { ...run, retried_by: event.data.run_id, revision };
    default:
      return run;
  }
}

/** Most runs never have waits and are returned unchanged. */
function withWaits(run: RunDocument, event: RecordedEvent): RunDocument {
  if (run.waits === undefined && event.type !== 'RunStepSuspended') return run;
  const { waits = noWaits, ...rest } = run;
  const left = evolveSlimWaits(waits, event as RunEvent) as NonNullable<RunDocument['waits']>;
  return left.length === 0 ? rest : { ...rest, waits: left };
}

type Place = Pick<RecordedEvent, 'revision' | 'metadata'>;

/** An interrupted attempt continues under another worker. */
function started(run: RunDocument, data: DataOf<'RunStarted'>, place: Place): RunDocument {
  const { worker, attempt, leased_until } = data;
  const at = place.metadata.occurredAt;
  const continues = run.attempts.at(-1)?.attempt === attempt;
  const ends = { finished_at: null, outcome: null, error: null, step: null };
  return {
    ...run,
    state: 'running',
    lease_owner: worker,
    leased_until,
    started_at: run.started_at ?? at,
    attempt,
    attempts: continues
      ? run.attempts.map((each) => (each.attempt === attempt ? { ...each, worker } : each))
      : [...run.attempts, { attempt, worker, started_at: at, ...ends }],
    interruptions: attempt === run.attempt ? run.interruptions : 0,
    revision: place.revision,
  };
}

function ended(
  run: RunDocument,
  end: Pick<DataOf<'RunFailed'>, 'output' | 'steps' | 'step'> & {
    readonly state: 'succeeded' | 'failed';
    readonly error: string | null;
  },
  { revision, metadata }: Place,
): RunDocument {
  const { state, error, step } = end;
  const finished_at = metadata.occurredAt;
  const { steps, log } = withSteps(run, end.steps);
  const attempts = attemptEnded(run, { outcome: state, finished_at, error, step });
  const output = end.output as JsonObject;
  const success = state === 'succeeded';
  return { ...run, state, success, error, finished_at, output, attempts, steps, log, revision };
}

/** The attempts with the end of the latest; an attempt that has ended stays as it is. */
function attemptEnded(
  run: RunDocument,
  end: Pick<RunAttempt, 'outcome' | 'finished_at' | 'error' | 'step'>,
): readonly RunAttempt[] {
  const last = run.attempts.at(-1);
  if (last === undefined || last.outcome !== null) return run.attempts;
  const { attempt, worker, started_at } = last;
  const { outcome, finished_at, error, step } = end;
  // Written without spreads, because it executes for every run of a rebuild.
  return run.attempts.with(-1, { attempt, worker, started_at, outcome, finished_at, error, step });
}

function withSteps(
  run: RunDocument,
  ended: readonly StepEnd[],
): Pick<RunDocument, 'steps' | 'log'> {
  if (ended.length === 0) return run;
  const steps = run.steps.concat(ended.map(stepOf));
  // The value comes from the log and is JSON, but its type does not say so.
  const lines = ended.flatMap((step) => step.log as readonly JsonObject[]);
  return { steps, log: lines.length === 0 ? run.log : run.log.concat(lines) };
}

function stepOf(end: StepEnd): RunStep {
  const { step, status, result, error, started_at, finished_at, attempt } = end;
  const { arguments_hash, now } = end;
  const known = result as JsonValue;
  const shown: RunStep = { step, status, result: known, error, started_at, finished_at, attempt };
  // Written without spreads, because a rebuild executes this for every run.
  if (arguments_hash !== undefined) shown.arguments_hash = arguments_hash;
  if (now !== undefined) shown.now = now;
  return shown;
}
