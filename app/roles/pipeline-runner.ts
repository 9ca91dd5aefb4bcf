import { toIso, type Clock } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import type { StepEnd } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { compilePipeline } from '../../domain/pipeline/compile.ts';
import { takeOverResults } from '../../domain/runs/run-results.ts';
import { endsOf } from '../../domain/runs/run-steps.ts';
import { executePipeline, type Environment } from '../../scheduler/pipeline/pipeline-execution.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { PipelineRunner, Work } from '../../scheduler/runs/run-work.ts';
import type { ToolRegistry } from '../../scheduler/tools/registry.ts';

interface RunnerOptions {
  /** Where the results stand that a retry begins with. */
  readonly store: EventStore;
  readonly tools: ToolRegistry;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** The value of `${secrets.NAME}`. */
  readonly secrets: (name: string) => string | undefined;
}

/** Executes the pipeline of a run's pinned task with the tools of this process. */
export function pipelineRunner(options: RunnerOptions): PipelineRunner {
  const { store } = options;
  return (work) => {
    const { run, task, known, attempt, record } = work;
    const { definition } = task;
    const event = known?.request.event ?? null;
    const pipeline = compilePipeline(definition.payload as JsonObject);
    const execute = (finished: readonly StepEnd[]): ReturnType<PipelineRunner> =>
      executePipeline(
        {
          pipeline,
          runId: run.id,
          taskId: run.taskId,
          actAs: run.createdBy,
          context: {
            task: taskInScope(run.taskId, definition.title, definition.tags, task.revision),
            run: {
              id: run.id,
              attempt,
              trigger: run.trigger,
              scheduled_for: run.scheduledFor,
              run_at: toIso(run.runAt),
            },
            event: event as JsonObject | null,
          },
          finished,
          attempt,
        },
        new RunEnvironment(options, work),
      );
    if (known === null) return execute([]);
    if (known.request.prior_results === null) return execute(endsOf(known.steps));
    return takeOverResults(store, known, pipeline, record, work.signal).then(execute);
  };
}

/** Of one run. A class, as a literal with a getter would be made anew for each, property by property. */
class RunEnvironment implements Environment {
  readonly tools: Environment['tools'];
  readonly clock: Environment['clock'];
  readonly telemetry: Telemetry;
  readonly isStopped: Environment['isStopped'];
  readonly secrets: Environment['secrets'];
  readonly record: Environment['record'];
  readonly span: Environment['span'];
  private readonly work: Work;

  constructor({ tools, clock, telemetry, secrets }: RunnerOptions, work: Work) {
    this.tools = tools;
    this.clock = clock;
    this.telemetry = telemetry;
    this.isStopped = work.isStopped;
    this.secrets = secrets;
    this.record = work.record;
    this.span = work.span;
    this.work = work;
  }

  /** Made only when it is asked for. */
  get signal(): AbortSignal {
    return this.work.signal;
  }
}

function taskInScope(
  id: string,
  title: string,
  tags: readonly string[],
  revision: number,
): JsonObject {
  return { id, title, tags, revision };
}
