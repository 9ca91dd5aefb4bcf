import type { KeyClaim, KeyName } from '../../domain/keys/key.ts';
import { overlapKey } from '../../domain/keys/overlap.ts';
import { streams } from '../../domain/streams.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import type { QueuedRun } from '../runs/queued-run.ts';

/** How many stream names are cached. Each contains a hash and is needed many times for each run. */
const MAX_CACHED_NAMES = 10_000;

const streamNames = new Map<string, string>();

const keysOfTasks = new WeakMap<LiveTask, readonly KeyName[]>();

/** Whether a run of the task needs any key. */
export function isKeyed({ definition }: LiveTask): boolean {
  return definition.concurrency_key !== null || definition.overlap_policy !== 'allow';
}

/** The keys that a run needs, in the order in which every process takes them, so that no deadlock arises. */
export function keysOf(task: LiveTask, { taskId }: QueuedRun): readonly KeyName[] {
  const cached = keysOfTasks.get(task);
  if (cached !== undefined) return cached;
  const { concurrency_key: key, overlap_policy, created_by: owner } = task.definition;
  const keys = [
    ...(overlap_policy === 'allow' ? [] : [overlapKey(taskId, owner)]),
    ...(key === null ? [] : [{ kind: 'concurrency' as const, owner, key }]),
  ];
  keysOfTasks.set(task, keys);
  return keys;
}

/** The stream of a key. */
export function streamOf({ kind, owner, key }: KeyName): string {
  const id = `${kind} ${owner} ${key}`;
  const cached = streamNames.get(id);
  if (cached !== undefined) return cached;
  const stream = streams.key(kind, owner, key);
  if (streamNames.size >= MAX_CACHED_NAMES) streamNames.clear();
  streamNames.set(id, stream);
  return stream;
}

/** A run's claim on one of its keys. */
export function claimOf(
  run: QueuedRun,
  { definition }: LiveTask,
  { kind }: Pick<KeyName, 'kind'>,
): KeyClaim {
  const { id: run_id, taskId: task_id, trigger, priority, since } = run;
  const base = { run_id, task_id, trigger, priority, since };
  if (kind === 'overlap') return { ...base, limit: 1, attempt: 0 };
  // The attempt that its start will record: see `startRun`.
  const attempt = run.state === 'queued' && run.attempt > 0 ? run.attempt : run.attempt + 1;
  return { ...base, limit: definition.concurrency_limit, attempt };
}

/**
 * Selects a run's preferred worker. Runs of a key with limit 1 share a worker, which hands the key on without asking
 * the others.
 */
export function affinityOf(run: QueuedRun, task: LiveTask | undefined): string {
  const { concurrency_key: key, concurrency_limit: limit } = task?.definition ?? {};
  if (task === undefined || typeof key !== 'string' || limit !== 1) return run.id;
  const name = keysOf(task, run).find(({ kind }) => kind === 'concurrency');
  return name === undefined ? run.id : streamOf(name);
}
