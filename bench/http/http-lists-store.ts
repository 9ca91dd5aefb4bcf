import { toIso } from '../../domain/clock.ts';
import type { StreamAppend } from '../../domain/event-store.ts';
import type { DomainEvent } from '../../domain/events/catalogue.ts';
import { toNewEvents } from '../../domain/handle.ts';
import { timeBasedId, nameBasedId, newId } from '../../domain/ids.ts';
import { taskDefaults } from '../../domain/tasks/task-definition.ts';
import type { RunTrigger } from '../../domain/vocabulary.ts';
import { appendAll, withLog } from '../log.ts';

/** Runs for each task on average; one in a hundred belongs to one busy task. */
const RUNS_PER_TASK = 10;
/** Agents, and how many of them own tasks. */
const AGENTS = 1_000;
const OWNERS = 50;
const DAY = 86_400_000;
/** Milliseconds over which runs are spread, up to now. */
const SPAN = 30 * DAY;

/** Ids for the requests to the store. */
export interface ListedIds {
  readonly agent: string;
  /** Has one in a hundred runs. */
  readonly busyTask: string;
  readonly task: string;
  /** The span of the runs. */
  readonly since: number;
  readonly until: number;
}

/**
 * Writes a number of runs, and a tenth as many tasks, to the log of an empty folder. The service builds the views in
 * bulk.
 */
export async function writeListed(directory: string, runs: number): Promise<ListedIds> {
  const tasks = Math.ceil(runs / RUNS_PER_TASK);
  const until = Date.now();
  const since = until - SPAN;
  // Large sequences make few commits.
  await withLog(directory, (store) => appendAll(store, appendsOf(runs, tasks, since), 2_000));
  return { agent: agentId(1), busyTask: taskId(0), task: taskId(tasks - 1), since, until };
}

function* appendsOf(runs: number, tasks: number, since: number): Generator<StreamAppend> {
  for (let agent = 0; agent < AGENTS; agent += 1) {
    const at = since - 2 * DAY + agent;
    yield append(`agent-${agentId(agent)}`, [registered(agent)], at, agentId(0));
  }
  for (let task = 0; task < tasks; task += 1) {
    const at = since - DAY + task;
    yield append(`task-${taskId(task)}`, taskEvents(task, at), at, ownerOf(task));
  }
  for (let run = 0; run < runs; run += 1) {
    const at = Math.floor(since + (run * SPAN) / runs);
    const task = run % 100 === 0 ? 0 : run % tasks;
    const trigger = triggerOf(share(run, 1));
    const actor = trigger === 'manual' ? ownerOf(task) : 'service';
    const stream = `run-${timeBasedId(at, 'listed run', String(run))}`;
    yield append(stream, runEvents(run, task, trigger, at), at, actor);
  }
}

function append(
  stream: string,
  events: readonly DomainEvent[],
  at: number,
  actor: string,
): StreamAppend {
  const commandId = newId(at);
  const context = { commandId, actor, source: 'bench', correlationId: commandId, now: at };
  return { stream, expected: 'none', events: toNewEvents(stream, events, context) };
}

/** Ids by name, because hashing them each time takes as long as everything else. */
const made = new Map<string, string>();

function idOf(kind: string, number: number): string {
  const name = `listed ${kind} ${String(number)}`;
  const known = made.get(name) ?? nameBasedId(name);
  made.set(name, known);
  return known;
}

const agentId = (number: number): string => idOf('agent', number);
const taskId = (number: number): string => idOf('task', number);
const ownerOf = (task: number): string => agentId(task % OWNERS);

/** A pseudorandom number below 1,000; different salts are independent. */
function share(number: number, salt: number): number {
  let mixed = Math.imul(number + 1, 0x9e3779b1) ^ Math.imul(salt, 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
  return ((mixed ^ (mixed >>> 15)) >>> 0) % 1_000;
}

function registered(agent: number): DomainEvent {
  const scopes = ['tasks:read', 'runs:read', ...(agent % 10 === 0 ? ['admin'] : [])];
  return {
    type: 'AgentRegistered',
    data: { name: `agent ${String(agent)}`, scopes, webhook_url: null },
  };
}

function taskEvents(task: number, at: number): readonly DomainEvent[] {
  const kind = (['cron', 'cron', 'rrule', 'event'] as const)[share(task, 4) % 4] ?? 'cron';
  const rules = { cron: '0 3 * * *', rrule: 'FREQ=DAILY', event: 'bench.none' } as const;
  const rare = share(task, 2) === 0;
  const created: DomainEvent = {
    type: 'TaskCreated',
    data: {
      definition: {
        ...taskDefaults,
        title: `report ${task}${rare ? ' needle' : ''}`,
        description: 'makes a report and sends it',
        schedule_kind: kind,
        schedule_expr: rules[kind],
        created_by: ownerOf(task),
        payload: { pipeline: [{ id: 'made', uses: 'echo', with: { text: 'a report' } }] },
        tags: [...(share(task, 6) < 500 ? ['common'] : []), ...(rare ? ['rare'] : [])],
      },
      anchor: toIso(Math.floor(at / 1000) * 1000),
      next_fire_at: kind === 'event' ? null : toIso(at + 10_000 * DAY),
    },
  };
  const status = share(task, 3);
  if (status < 50) return [created, { type: 'TaskPaused', data: { by_failures: false } }];
  return status < 100 ? [created, { type: 'TaskCanceled', data: {} }] : [created];
}

function runEvents(
  run: number,
  task: number,
  trigger: RunTrigger,
  at: number,
): readonly DomainEvent[] {
  const task_id = taskId(task);
  const request = {
    task_id,
    task_revision: 0,
    created_by: ownerOf(task),
    trigger,
    scheduled_for: trigger === 'schedule' || trigger === 'backfill' ? toIso(at) : null,
    priority: 5,
  };
  const state = share(run, 5);
  if (state < 20) {
    return [{ type: 'RunSkipped', data: { ...request, reason: 'overlap', because_of: null } }];
  }
  const requested: DomainEvent = {
    type: 'RunRequested',
    data: {
      ...request,
      run_at: toIso(at),
      event: null,
      retry_of: null,
      prior_steps: [],
      overlap_policy: 'allow',
    },
  };
  if (state < 30) return [requested];
  const started: DomainEvent = {
    type: 'RunStarted',
    data: { worker: 'worker-1', attempt: 1, leased_until: toIso(at + 30_000) },
  };
  if (state < 40) return [requested, started];
  if (state < 50) {
    const retry_at = toIso(at + 60_000);
    const failed = { attempt: 1, error: 'no answer', step: 'made', retry_at };
    return [requested, started, { type: 'RunAttemptFailed', data: failed }];
  }
  if (state < 80) return [requested, { type: 'RunCanceled', data: { attempt: 0 } }];
  const started_at = toIso(at);
  const times = { started_at, finished_at: started_at, attempt: 1, log: [] };
  const summary = { total_steps: 1, executed_steps: 1, skipped_steps: 0 };
  const ended = { task_id, started_at, attempt: 1 };
  if (state < 200) {
    const error = 'no answer';
    const step = { step: 'made', status: 'failed' as const, result: null, error, ...times };
    const data = { ...ended, error, step: 'made', steps: [step], output: { steps: {}, summary } };
    return [requested, started, { type: 'RunFailed', data }];
  }
  const result = { text: 'a report' };
  const step = { step: 'made', status: 'succeeded' as const, result, error: null, ...times };
  const output = { steps: { made: result }, summary };
  return [requested, started, { type: 'RunSucceeded', data: { ...ended, steps: [step], output } }];
}

function triggerOf(part: number): RunTrigger {
  if (part < 900) return 'schedule';
  if (part < 970) return 'manual';
  return part < 999 ? 'event' : 'backfill';
}
