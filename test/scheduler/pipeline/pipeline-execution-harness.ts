import { Type } from '@sinclair/typebox';
import type { StepEnd } from '../../../domain/events/catalogue.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { compilePipeline } from '../../../domain/pipeline/compile.ts';
import { outputOf } from '../../../domain/pipeline/output.ts';
import type { Wait } from '../../../domain/runs/run-waits.ts';
import type {
  Environment,
  ExecutionResult,
  StepRecord,
} from '../../../scheduler/pipeline/execution.ts';
import { executePipeline } from '../../../scheduler/pipeline/pipeline-execution.ts';
import { basicTools, defineTool } from '../../../scheduler/tools/basic-tools.ts';
import { ToolRegistry } from '../../../scheduler/tools/registry.ts';
import { waitingTools } from '../../../scheduler/tools/waiting-tools.ts';
import type { Tool, ToolCall } from '../../../scheduler/tools/tool.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import type { Secret } from '../../../domain/secrets/secret-source.ts';
import { plainSecrets, reveal, secretsOfRun } from '../../support/test-secrets.ts';

/** The parts of an attempt that a test specifies. The others have simple defaults. */
export interface Given {
  readonly pipeline: readonly unknown[];
  readonly params?: JsonObject;
  readonly finished?: readonly StepEnd[];
  readonly attempt?: number;
  readonly event?: JsonObject;
  /** Tools by name, in addition to the basic ones. */
  readonly tools?: Readonly<Record<string, Tool['run'] | Omit<Tool, 'name'>>>;
  /** The secrets may be sent everywhere, unless `secretLimits` say otherwise. */
  readonly secrets?: Readonly<Record<string, string>>;
  readonly secretLimits?: Partial<Secret>;
  readonly clock?: VirtualClock;
  readonly signal?: AbortSignal;
  readonly stop?: Environment['stop'];
  readonly record?: (steps: readonly StepEnd[]) => Promise<void>;
  readonly waits?: readonly Wait[];
  readonly onResumed?: Environment['onResumed'];
  readonly telemetry?: Environment['telemetry'];
  readonly artifacts?: Environment['artifacts'];
  readonly evaluator?: Environment['evaluator'];
}

/** How an attempt went. */
export interface Went {
  readonly result: ExecutionResult;
  /** Whether the result was available synchronously. */
  readonly atOnce: boolean;
  /** Batches that were recorded on the way. */
  readonly recorded: readonly (readonly StepEnd[])[];
  /** Everything that was recorded or returned with the result, except the step ends of the last event. */
  readonly records: readonly StepRecord[];
  /** All step ends, recorded or returned with the result. */
  readonly ends: readonly StepEnd[];
  /** The run's output, folded from the earlier ends, these and the result. */
  readonly output: JsonObject;
}

/** Takes its time within the process, unlike `sleep`. */
const nap = defineTool({
  name: 'nap',
  description: '',
  schema: Type.Object({ seconds: Type.Number() }),
  run: async ({ seconds }, { clock, signal }) => {
    await clock.sleep(seconds * 1000, signal);
    return { slept_seconds: seconds };
  },
});

/** Stops no run. */
const never = new AbortController().signal;

const stopBy = (signal: AbortSignal): Environment['stop'] => ({
  signal,
  get aborted() {
    return signal.aborted;
  },
});

/** Executes one attempt of a run in memory. */
export async function execute(given: Given): Promise<Went> {
  const { clock = new VirtualClock(), secrets = {}, finished = [] } = given;
  const tools = new ToolRegistry();
  for (const tool of [...basicTools, ...waitingTools, nap, reveal]) tools.register(tool);
  for (const [name, tool] of Object.entries(given.tools ?? {})) {
    const rest =
      typeof tool === 'function'
        ? { description: '', schema: { 'x-secret': true }, run: tool }
        : tool;
    tools.register({ ...rest, name });
  }
  const recorded: StepEnd[][] = [];
  const records: StepRecord[] = [];
  const payload = { pipeline: given.pipeline, params: given.params ?? {} };
  const executed = executePipeline(
    {
      pipeline: compilePipeline(payload as unknown as JsonObject),
      runId: 'run-1',
      namespace: 'default',
      taskId: 'task-1',
      taskCreatedAt: '2026-03-01T09:00:00.000Z',
      actAs: 'agent-1',
      context: {
        params: given.params ?? {},
        task: { id: 'task-1', title: 'Test' },
        run: { id: 'run-1', attempt: given.attempt ?? 1 },
        event: given.event ?? null,
      },
      finished,
      waits: given.waits ?? [],
      attempt: given.attempt ?? 1,
      priority: 5,
    },
    {
      tools: tools.of('default'),
      clock,
      stop: given.stop ?? stopBy(given.signal ?? never),
      secrets: secretsOfRun(plainSecrets(secrets, given.secretLimits), Object.values(secrets)),
      record: async (some) => {
        const steps = endsIn(some);
        await given.record?.(steps);
        recorded.push(steps);
        records.push(...some);
      },
      ...(given.onResumed === undefined ? {} : { onResumed: given.onResumed }),
      random: () => 1,
      artifacts: given.artifacts,
      evaluator: given.evaluator,
      ...(given.telemetry === undefined ? {} : { telemetry: given.telemetry }),
    },
  );
  const atOnce = !(executed instanceof Promise);
  const result = await executed;
  records.push(...(result.before ?? []));
  const ends = [...endsIn(records), ...result.steps];
  return {
    result,
    atOnce,
    recorded,
    ends,
    records,
    output: outputOf([...finished, ...ends], 'output' in result ? result.output : {}),
  };
}

const endsIn = (records: readonly StepRecord[]): StepEnd[] =>
  records.flatMap((record) => (record.type === 'RunStepCompleted' ? [record.data] : []));

/** A tool that records its calls and responds later, like real tools. */
export function recorder(answer: (args: unknown, call: ToolCall) => unknown = (args) => args): {
  readonly run: Tool['run'];
  readonly calls: { args: unknown; call: ToolCall }[];
} {
  const calls: { args: unknown; call: ToolCall }[] = [];
  const run: Tool['run'] = async (args, call) => {
    calls.push({ args, call });
    await Promise.resolve();
    return answer(args, call);
  };
  return { run, calls };
}
