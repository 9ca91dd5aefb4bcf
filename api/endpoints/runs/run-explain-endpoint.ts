import { toIso } from '../../../domain/clock.ts';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { compilePipeline } from '../../../domain/pipeline/compile.ts';
import { pipelineSecrets } from '../../../domain/pipeline/pipeline-secrets.ts';
import { noWaits } from '../../../domain/runs/run-waits.ts';
import { stepInput, taskInScope } from '../../../domain/runs/step-input.ts';
import { stepTimes, type StepTime } from '../../../domain/runs/step-times.ts';
import { streams } from '../../../domain/streams.ts';
import { cutValue } from '../../../projections/cut-document.ts';
import type { Cut, ReadModel } from '../../../projections/read-model.ts';
import { neighbourOf, runsBefore } from '../../../projections/reading/run-queries.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { endpoint, idIn, type Call, type Endpoint } from '../../endpoint.ts';
import { shownEvent } from '../../params/shown-event.ts';
import { pinnedTask, shownParams } from '../../params/shown-params.ts';
import { RunExplanation } from '../../schemas/response-schemas-runs.ts';
import { RunExplainQuery } from '../../schemas/schemas.ts';
import { MAX_LISTED_BYTES } from '../listing.ts';
import { inReach } from '../lookup.ts';
import { nameOf, obstaclesOf } from './run-obstacles.ts';

/** The most bytes read of the earlier runs whose steps are compared. */
const MAX_COMPARED_BYTES = 2 * 1024 * 1024;

/** Fields that a comparison of step times does not need. */
const timesOnly: Cut = {
  maxBytes: 1024,
  values: [{ path: ['steps', '*', 'result'], preview: false }],
  omitted: ['attempts', 'log', 'output', 'params', 'event', 'waits'],
};

const explain = endpoint('GET /runs/:run_id/explain', {
  operationId: 'explainRun',
  summary: 'Explains why a run ran, what it waits for, and which of its steps were slow',
  scopes: ['runs:read'],
  acceptsOwn: true,
  query: RunExplainQuery,
  reads: [runsProjection],
  responses: { 200: RunExplanation },
  async handle(call) {
    const { dependencies, query, context } = call;
    const { readModel } = dependencies;
    const id = idIn(call, 'run_id');
    const found = await readModel.get(runsProjection, id);
    const run = inReach(call, 'run', id, found?.document);
    const [requested, waits_for, previous, next, step_times, input] = await Promise.all([
      requestedBy(dependencies, run),
      obstaclesOf(dependencies, run, context.now),
      neighbour(readModel, run, 'previous'),
      neighbour(readModel, run, 'next'),
      timesOf(readModel, run),
      query.step === undefined ? null : inputOf(call, run, query.step),
    ]);
    const { state } = run;
    const neighbours = { previous_run_id: previous, next_run_id: next };
    return {
      body: { run_id: id, state, requested, waits_for, ...neighbours, step_times, input },
    };
  },
});

export const runExplainEndpoints: readonly Endpoint[] = [explain];

/** The requester of a run and the reason, according to the first event of its stream. */
async function requestedBy(dependencies: ApiDependencies, run: RunDocument): Promise<object> {
  const [first] = await dependencies.store.readStream(streams.run(run.id), { limit: 1 });
  const actor = first?.metadata.actor ?? 'service';
  const reason = first?.metadata.reason ?? null;
  const by_name = actor === 'service' ? null : await nameOf(dependencies, actor);
  const text = causeOf(run, by_name ?? (actor === 'service' ? 'The service' : `Agent ${actor}`));
  return { at: run.queued_at, by: actor, by_name, reason, text };
}

function causeOf(run: RunDocument, who: string): string {
  const { event, parent_run_id: parent, retry_of, scheduled_for, trigger } = run;
  if (retry_of !== null) return `${who} retried run ${retry_of}.`;
  if (parent !== undefined) return `A step of run ${parent} called its task.`;
  const due = scheduled_for === null ? '' : ` for ${scheduled_for.replace('.000Z', 'Z')}`;
  switch (trigger) {
    case 'schedule':
      return `The schedule of its task was due${due.replace(' for', ' at')}.`;
    case 'backfill':
      return `A backfill requested it${due}.`;
    case 'event':
      return event === null
        ? 'An event triggered its task.'
        : `Event ${event.id} of topic ${event.topic} triggered its task.`;
    case 'manual':
      return `${who} started it by hand.`;
  }
}

/** The run of the same task that was queued directly before or after it, or null. */
async function neighbour(
  readModel: ReadModel,
  run: RunDocument,
  side: 'previous' | 'next',
): Promise<string | null> {
  const [found] = await readModel.find(runsProjection, neighbourOf(run, side));
  return found?.key ?? null;
}

async function timesOf(readModel: ReadModel, run: RunDocument): Promise<readonly StepTime[]> {
  const { documents } = await readModel.list(runsProjection, {
    ...runsBefore(run),
    counted: null,
    mostBytes: MAX_COMPARED_BYTES,
    cut: timesOnly,
  });
  return stepTimes(
    run,
    documents.map(({ text }) => JSON.parse(text) as RunDocument),
  );
}

/** The arguments with which a step called its tool; null for callers who may not see the task. */
async function inputOf(
  { caller, dependencies, context }: Pick<Call, 'caller' | 'dependencies' | 'context'>,
  run: RunDocument,
  name: string,
): Promise<{ readonly step: string; readonly value: JsonValue; readonly exact: boolean } | null> {
  const sees = caller === null || caller.admin || caller.scopes.includes('tasks:read');
  const task = sees ? await pinnedTask(dependencies, run) : null;
  const params = task === null ? null : await shownParams(dependencies, run);
  if (task === null || params === null) return null;
  const { id, steps, trigger, scheduled_for, run_at, waits = noWaits } = run;
  const event = (await shownEvent(dependencies, run)) as JsonObject | null;
  const end = steps.findLast(({ step }) => step === name);
  const wait = waits.find(({ step }) => step === name);
  const recorded = wait?.arguments_hash ?? end?.arguments_hash;
  const attempt = end?.attempt ?? run.attempt;
  const payload = task.definition.payload as JsonObject;
  // The params were shown, so the secrets must be readable.
  const masking = await pipelineSecrets(payload, task.namespace, dependencies.secrets);
  const input = stepInput(
    compilePipeline(payload),
    {
      steps,
      params,
      event,
      mask: (value) => masking.mask(value),
      task: taskInScope(run.task_id, run.task_revision, task.definition),
      run: { id, attempt, trigger, scheduled_for, run_at },
    },
    {
      name,
      now: end?.now ?? end?.started_at ?? wait?.since ?? toIso(context.now),
      ...(recorded === undefined ? {} : { recorded }),
    },
  );
  return (
    input && {
      step: name,
      value: cutValue(input.value, MAX_LISTED_BYTES, true),
      exact: input.exact,
    }
  );
}
