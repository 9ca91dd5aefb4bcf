import type { ArtifactKeeping } from '../../domain/artifacts/keep-result.ts';
import { notPermitted, type Denial } from '../../domain/agents/permissions.ts';
import { toIso, type Clock } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import type { RequestedEvent, StepEnd } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { compilePipeline, type CompiledPipeline } from '../../domain/pipeline/compile.ts';
import { defaultParamsIssues, mergeParams } from '../../domain/pipeline/params.ts';
import type { SecretAccess, SecretUser } from '../../domain/secrets/secret-access.ts';
import { SecretError } from '../../domain/secrets/secret-source.ts';
import { copyPriorResults } from '../../domain/runs/run-results.ts';
import { noWaits } from '../../domain/runs/run-waits.ts';
import { endsOf } from '../../domain/runs/run-steps.ts';
import type { TaskDefinition } from '../../domain/tasks/task-definition.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { EventPayloads } from '../../projections/reading/event-payloads.ts';
import type { ExpressionEvaluator } from '../../scheduler/pipeline/costly-expressions.ts';
import { executePipeline } from '../../scheduler/pipeline/pipeline-execution.ts';
import { permanentFailure } from '../../scheduler/runs/run-ending.ts';
import type { RunSecrets } from '../../scheduler/pipeline/execution.ts';
import type { PipelineOutcome, PipelineRunner } from '../../scheduler/runs/run-work.ts';
import { anyOwner, type Owners } from '../../scheduler/owners/owners.ts';
import type { NamespaceTools, ToolRegistry } from '../../scheduler/tools/registry.ts';

/** Executes the pipeline of a run's pinned task with the tools of this process. */
export function pipelineRunner(options: {
  /** Holds the results that a retry starts with. */
  readonly store: EventStore;
  readonly tools: Pick<ToolRegistry, 'of'>;
  /** Provides the payloads of events. Default: they are read from the store. */
  readonly eventPayloads?: Pick<EventPayloads, 'whole'> | undefined;
  /** Resolves once `tools` has everything that other processes had registered before the call. Default: at once. */
  readonly refreshTools?: () => Promise<void>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly secrets: Pick<SecretAccess, 'values' | 'open'>;
  /** Evaluates costly expressions. Default: they are evaluated in this thread. */
  readonly evaluator?: ExpressionEvaluator | undefined;
  /** Stores large results. Default: they are cut. */
  readonly artifacts?: ArtifactKeeping | undefined;
  /** Decides whose runs may continue. Default: everybody's. */
  readonly owners?: Owners | undefined;
  /** The address of a callback. Default: its path. */
  readonly callbackUrl?: (token: string) => string;
}): PipelineRunner {
  const { store, clock, telemetry, secrets, callbackUrl, refreshTools, artifacts } = options;
  const { evaluator, owners = anyOwner, eventPayloads = new EventPayloads(store) } = options;
  const execute: PipelineRunner = ({
    run,
    task,
    known,
    attempt,
    record,
    onResumed,
    stop,
    span,
  }) => {
    const { id, namespace, taskId, trigger, priority } = run;
    const tools = options.tools.of(namespace);
    const { title, tags, payload } = task.definition;
    const fault = trigger === 'event' ? defaultsFault(task.definition) : null;
    if (fault !== null) return permanentFailure(fault);
    const pipeline = compilePipeline(payload as JsonObject);
    const shown = {
      params: mergeParams(pipeline.params, known?.request.params ?? null),
      task: { id: taskId, title, tags, revision: task.revision } as JsonObject,
      run: { id, attempt, trigger, scheduled_for: run.scheduledFor, run_at: toIso(run.runAt) },
    };
    const user = { namespace, agentId: run.createdBy, taskId, runId: id };
    const denial = (): ReturnType<Owners['stepDenial']> => owners.stepDenial(run.createdBy);
    const shared = { tools, clock, telemetry, callbackUrl, artifacts, evaluator, denial };
    const environment = { ...shared, stop, record, onResumed, span };
    const executeWith = (
      event: RequestedEvent | null,
      finished: readonly StepEnd[],
      masked: Iterable<string>,
    ): ReturnType<PipelineRunner> =>
      executePipeline(
        {
          pipeline,
          runId: id,
          namespace,
          taskId,
          taskCreatedAt: task.created_at,
          actAs: run.createdBy,
          context: { ...shown, event: event as JsonObject | null },
          finished,
          waits: known?.waits ?? noWaits,
          attempt,
          priority,
        },
        { ...environment, secrets: secretsOf(secrets, user, masked) },
      );
    const executeFor = (
      event: RequestedEvent | null,
      finished: readonly StepEnd[],
    ): ReturnType<PipelineRunner> => {
      const { secretNames } = pipeline;
      if (secretNames.length === 0) return executeWith(event, finished, []);
      return secrets.values(namespace, secretNames).then(
        (values) => executeWith(event, finished, values.values()),
        (error: unknown) => withoutSecrets(error),
      );
    };
    const executeAfter = (finished: readonly StepEnd[]): ReturnType<PipelineRunner> => {
      const event = known?.request.event ?? null;
      if (event === null || event.payload !== undefined) return executeFor(event, finished);
      return eventPayloads.whole(event, namespace).then((whole) => {
        if (whole !== null) return executeFor(whole, finished);
        return permanentFailure(`the payload of its event ${event.id} is not in the log`);
      });
    };
    const begin = (): ReturnType<PipelineRunner> => {
      if (known === null) return executeAfter([]);
      if (known.request.prior_results === null) return executeAfter(endsOf(known.steps));
      return copyPriorResults(store, known, pipeline, record, stop.signal).then(executeAfter);
    };
    // A worker may just have registered the tool through another process.
    const isReady = refreshTools === undefined || hasAllTools(pipeline.steps, tools);
    return isReady ? begin() : refreshTools().then(begin);
  };
  return (work) => {
    const denying = owners.stepDenial(work.run.createdBy);
    const run = (denial: Denial | null): ReturnType<PipelineRunner> =>
      denial === null ? execute(work) : permanentFailure(notPermitted(denial));
    return denying instanceof Promise ? denying.then(run) : run(denying);
  };
}

function secretsOf(
  secrets: Pick<SecretAccess, 'open'>,
  user: Omit<SecretUser, 'step'>,
  masked: Iterable<string>,
): RunSecrets {
  return { masked, open: (name, step) => secrets.open(name, { ...user, step }) };
}

/** An attempt cannot start while its secrets are unknown, as it could not mask them. */
function withoutSecrets(error: unknown): PipelineOutcome {
  if (!(error instanceof SecretError)) throw error;
  const { message, retryable } = error;
  return { kind: 'failed', error: message, step: null, retryable, steps: [], output: {} };
}

/**
 * The defaults of an event task may be incomplete, because a manual run can provide the rest. A run of an event cannot.
 */
function defaultsFault(definition: TaskDefinition): string | null {
  const [first] = defaultParamsIssues(definition, false);
  return first === undefined ? null : `${first.field}: ${first.issue}`;
}

function hasAllTools(
  steps: CompiledPipeline['steps'],
  tools: Pick<NamespaceTools, 'find'>,
): boolean {
  for (const step of steps) {
    if (step.kind === 'group') {
      if (!hasAllTools(step.steps, tools)) return false;
    } else if (tools.find(step.uses) === undefined) return false;
  }
  return true;
}
