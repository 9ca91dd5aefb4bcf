import type { JsonObject } from '../../domain/json.ts';
import { compilePipeline, type CompiledPipeline } from '../../domain/pipeline/compile.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import type { QueuedRun } from './queued-run.ts';
import type { ToolRegistry } from '../tools/registry.ts';

/** A longer pipeline would block the event loop, so it is not instant. */
const MAX_INSTANT_STEPS = 10;

/**
 * Selects instant runs: a few steps with synchronous tools, and no key to wait for. A run whose task is not in memory is
 * not instant.
 *
 * @param isGranted whether a run already has the concurrency key that it needs
 */
export function instantRuns(
  tasks: Pick<PinnedTasks, 'peek'>,
  tools: Pick<ToolRegistry, 'find'>,
  isGranted: (run: QueuedRun) => boolean = () => false,
): (run: QueuedRun, granted?: boolean) => boolean {
  return (run, granted) => {
    const definition = tasks.peek(run.taskId, run.taskRevision)?.definition;
    if (definition === undefined) return false;
    if (definition.overlap_policy !== 'allow') return false;
    if (definition.concurrency_key !== null && !(granted ?? isGranted(run))) return false;
    const { steps } = compilePipeline(definition.payload as JsonObject);
    return (
      steps.length <= MAX_INSTANT_STEPS &&
      steps.every(
        (step) =>
          step.kind === 'call' &&
          step.each === null &&
          tools.find(step.uses)?.tool.synchronous === true,
      )
    );
  };
}

/**
 * Selects the instant runs whose start is written together with their end, after their execution. A run that kills its
 * process is given up after some starts in its stream. So a run that evaluates expressions, and was requested before this
 * process followed the log, has its start written first.
 */
export function runsStartingWithEnd(
  tasks: Pick<PinnedTasks, 'peek'>,
  tools: Pick<ToolRegistry, 'find'>,
  isInstant: (run: QueuedRun) => boolean,
): (run: QueuedRun) => boolean {
  return (run) => {
    const definition = tasks.peek(run.taskId, run.taskRevision)?.definition;
    if (definition === undefined || !isInstant(run)) return false;
    return run.isNew || evaluatesNothing(compilePipeline(definition.payload as JsonObject), tools);
  };
}

function evaluatesNothing({ steps }: CompiledPipeline, tools: Pick<ToolRegistry, 'find'>): boolean {
  return steps.every(
    (step) =>
      step.kind === 'call' &&
      step.args.constant &&
      // The tool may evaluate a constant.
      tools.find(step.uses)?.tool.evaluates !== true &&
      (step.condition === null || typeof step.condition === 'boolean'),
  );
}
