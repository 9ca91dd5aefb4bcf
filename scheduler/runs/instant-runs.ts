import type { JsonObject } from '../../domain/json.ts';
import { compilePipeline } from '../../domain/pipeline/compile.ts';
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
