import { serviceTools } from '../../../extensions/mcp_http/service-tools.ts';
import type { Things } from './things.ts';

type Arguments = (things: Things, me: string) => Readonly<Record<string, unknown>>;

/** What arguments of the tools mean, if they can name a thing. */
const named: Readonly<Record<string, (things: Things) => string>> = {
  task_id: ({ task }) => task,
  run_id: ({ failedRun }) => failedRun,
  parent_run_id: ({ run }) => run,
  approval_id: ({ approval }) => approval,
  artifact: ({ artifact }) => artifact,
  created_by: ({ agent }) => agent,
  source_agent_id: ({ agent }) => agent,
  topic: ({ topic }) => topic,
  tag: ({ tag }) => tag,
  search: ({ mark }) => mark,
};

/** Arguments that name nothing, and fields of a task, which `POST /tasks` tries. */
const neutral = new Set([
  ...['limit', 'cursor', 'from', 'at', 'start_time', 'end_time', 'status', 'state', 'trigger'],
  ...['schedule_kind', 'success', 'reason', 'comment', 'if_revision', 'params', 'missed'],
  ...['delay_seconds', 'wait_seconds', 'payload', 'idempotency_key', 'count', 'tags'],
]);

/** Tools whose arguments are those of a task. */
const ofTasks = new Set(['create_task', 'update_task', 'preview_schedule']);

/** Arguments that a valid call needs in addition to those that name things. */
const needed: Readonly<Record<string, Arguments>> = {
  create_task: ({ topic }) => ({
    title: 'Listens',
    schedule_kind: 'event',
    schedule_expr: topic,
    payload: { pipeline: [{ uses: 'echo' }] },
  }),
  update_task: () => ({ title: 'Taken over' }),
  snooze_task: () => ({ delay_seconds: 5 }),
  explain_task: () => ({ at: '2026-01-01T00:00:00Z' }),
};

export interface ToolPlan {
  readonly tool: string;
  readonly calls: (things: Things, me: string) => readonly Readonly<Record<string, unknown>>[];
}

/** Calls of all tools for language models that send a request to the service. */
export const toolPlans: readonly ToolPlan[] = serviceTools.map(({ name, parameters }) => ({
  tool: name,
  calls: (things, me) => {
    const valueOf = (parameter: string) => {
      // The artifact does not belong to the failed run.
      if (name === 'get_run_artifact' && parameter === 'run_id') return things.artifactRun;
      if (name === 'list_approvals' && parameter === 'run_id') return things.approvalRun;
      return named[parameter]?.(things);
    };
    const base = Object.fromEntries(
      (parameters.required ?? [])
        .map((parameter) => [parameter, valueOf(parameter)] as const)
        .filter(([, value]) => value !== undefined),
    );
    const whole = { ...base, ...needed[name]?.(things, me) };
    const others = Object.keys(parameters.properties).filter((each) => !(each in whole));
    const further = others
      .map((parameter) => [parameter, valueOf(parameter)] as const)
      .filter(([, value]) => value !== undefined)
      .map(([parameter, value]) => ({ ...whole, [parameter]: value }));
    return Object.keys(whole).length === 0 && further.length > 0 ? further : [whole, ...further];
  },
}));

/** Arguments of tools that are missing in the tables. */
export function toolGaps(): readonly string[] {
  return serviceTools.flatMap(({ name, parameters }) =>
    Object.keys(parameters.properties)
      .filter((parameter) => named[parameter] === undefined && !neutral.has(parameter))
      .filter(() => !ofTasks.has(name))
      .map((parameter) => `${name}: what can ${parameter} name?`),
  );
}

/** The tools of pipelines, and a step of each that reaches for things; null if a tool reaches for nothing. */
export const stepAttempts: Readonly<Record<string, ((things: Things) => object) | null>> = {
  echo: null,
  log: null,
  fail: null,
  transform: null,
  sleep: null,
  approval: null,
  'http.request': null,
  'wait.event': ({ topic }) => ({ topic, timeout_seconds: 3600 }),
  'events.publish': ({ topic }) => ({ topic, payload: { forged: true } }),
  'tasks.run': ({ task }) => ({ task_id: task, wait: true }),
};
