import type { JsonObject } from '../../domain/json.ts';
import { compilePipeline, type CompiledPipeline } from '../../domain/pipeline/compile.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import type { QueuedRun } from './run-queue.ts';
import type { ToolRegistry } from '../tools/registry.ts';

/** A pipeline of more steps than this holds up the others on the event loop, and counts as one that takes time. */
const MOST_STEPS = 10;

/**
 * Tells the runs whose execution waits for nothing: a few steps with tools that answer at once, no key to wait for.
 * What is not at hand in memory is not looked up: such a run counts as one that takes time.
 *
 * @param isGranted whether a run was handed the concurrency key that it needs
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
      steps.length <= MOST_STEPS &&
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
 * Tells the runs of {@link instantRuns} that may be executed before their start stands in the log, which is then written
 * together with their end: nobody outside could tell. But it is the starts in the log by which a run is given up at last
 * that brings one process after the other down. So a run in which something is evaluated is executed like that only where
 * it was requested while this process was there: of what was left by another one, or by the time before a restart, the
 * start is written first.
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
      // A constant may be an expression that the tool evaluates.
      tools.find(step.uses)?.tool.evaluates !== true &&
      (step.condition === null || typeof step.condition === 'boolean'),
  );
}
