import type { JsonObject } from '../../domain/json.ts';
import {
  compilePipeline,
  type CompiledPipeline,
  type CompiledStep,
} from '../../domain/pipeline/compile.ts';
import { finishedSteps } from '../../domain/pipeline/progress.ts';
import type { KnownRun } from '../../domain/runs/run.ts';
import { endsOf } from '../../domain/runs/run-steps.ts';
import { hasResult } from '../../domain/runs/run-waits.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import type { QueuedRun } from './queued-run.ts';
import type { NamespaceTools, ToolRegistry } from '../tools/registry.ts';
import type { Tool } from '../tools/tool.ts';

/** A longer pipeline would block the event loop, so it is not instant. */
const MAX_INSTANT_STEPS = 10;

/**
 * Selects instant runs: those with a few steps, tools that return at once, and no key to wait for. A run whose task is
 * not in memory is not instant.
 *
 * @param isGranted whether a run already has the concurrency key that it needs
 */
export function instantRuns(
  tasks: Pick<PinnedTasks, 'peek'>,
  tools: Pick<ToolRegistry, 'of'>,
  isGranted: (run: QueuedRun) => boolean = () => false,
): (run: QueuedRun, granted?: boolean) => boolean {
  return (run, granted) => {
    const definition = tasks.peek(run.taskId, run.taskRevision)?.definition;
    if (definition === undefined) return false;
    if (definition.overlap_policy !== 'allow') return false;
    if (definition.concurrency_key !== null && !(granted ?? isGranted(run))) return false;
    const { steps } = compilePipeline(definition.payload as JsonObject);
    return areInstant(steps, tools.of(run.namespace));
  };
}

/**
 * Selects the runs whose start is written together with their end, after their execution: instant runs, and runs with
 * only instant steps left after a wait. A run that kills its process fails after a number of starts in its stream.
 * Therefore, the start of a run is written first if it evaluates expressions and was requested before this process
 * followed the log.
 */
export function runsStartingWithEnd(
  tasks: Pick<PinnedTasks, 'peek'>,
  tools: Pick<ToolRegistry, 'of'>,
  isInstant: (run: QueuedRun) => boolean,
): (run: QueuedRun, resumed: KnownRun | null) => boolean {
  return (run, resumed) => {
    const definition = tasks.peek(run.taskId, run.taskRevision)?.definition;
    if (definition === undefined) return false;
    const pipeline = compilePipeline(definition.payload as JsonObject);
    const { steps } = pipeline;
    const left = resumed === null ? steps : stepsLeft(pipeline, resumed);
    const own = tools.of(run.namespace);
    if (resumed === null ? !isInstant(run) : !areInstant(left, own)) return false;
    return run.isNew || evaluatesNothing(left, own);
  };
}

/** Selects steps that have not ended, except those whose wait has ended with a result. */
function stepsLeft(pipeline: CompiledPipeline, run: KnownRun): readonly CompiledStep[] {
  const finished = finishedSteps(pipeline, endsOf(run.steps));
  const resumed = new Set(run.waits.filter(hasResult).map(({ step }) => step));
  return pipeline.steps.filter(({ id }) => !finished.has(id) && !resumed.has(id));
}

function areInstant(steps: readonly CompiledStep[], tools: Pick<NamespaceTools, 'find'>): boolean {
  return (
    steps.length <= MAX_INSTANT_STEPS &&
    steps.every(
      (step) =>
        step.kind === 'call' && step.each === null && answersAtOnce(tools.find(step.uses)?.tool),
    )
  );
}

/** A step of an external tool only creates a job, which has no effect before it is recorded. */
function answersAtOnce(tool: Tool | undefined): boolean {
  return tool !== undefined && (tool.synchronous === true || tool.isExternal === true);
}

function evaluatesNothing(
  steps: readonly CompiledStep[],
  tools: Pick<NamespaceTools, 'find'>,
): boolean {
  return steps.every(
    (step) =>
      step.kind === 'call' &&
      step.args.constant &&
      // The tool may evaluate a constant.
      tools.find(step.uses)?.tool.evaluates !== true &&
      (step.condition === null || typeof step.condition === 'boolean'),
  );
}
