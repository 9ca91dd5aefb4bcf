import type { KeyClaim, KeyName } from '../../domain/keys/key.ts';
import { overlapKey } from '../../domain/keys/overlap.ts';
import { streams } from '../../domain/streams.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import type { QueuedRun } from '../runs/run-queue.ts';

/** Names of streams that are kept: each is a hash, and is asked for again and again by whatever a run does. */
const MOST_NAMES = 10_000;

const streamNames = new Map<string, string>();

/** Of each task at a revision: every run of it asks for them. */
const keysOfTasks = new WeakMap<LiveTask, readonly KeyName[]>();

/** Whether a run of the task needs any key. */
export function isKeyed({ definition }: LiveTask): boolean {
  return definition.concurrency_key !== null || definition.overlap_policy !== 'allow';
}

/** The keys that a run needs, in the order in which all take them: so nobody waits for each other. */
export function keysOf(task: LiveTask, { taskId }: QueuedRun): readonly KeyName[] {
  const before = keysOfTasks.get(task);
  if (before !== undefined) return before;
  const { concurrency_key: key, overlap_policy, created_by: owner } = task.definition;
  const keys = [
    ...(overlap_policy === 'allow' ? [] : [overlapKey(taskId, owner)]),
    ...(key === null ? [] : [{ kind: 'concurrency' as const, owner, key }]),
  ];
  keysOfTasks.set(task, keys);
  return keys;
}

/** The stream of a key. */
export function streamOf(name: KeyName): string {
  const { kind, owner, key } = name;
  const text = `${kind} ${owner} ${key}`;
  const before = streamNames.get(text);
  if (before !== undefined) return before;
  const stream = streams.key(kind, owner, key);
  if (streamNames.size >= MOST_NAMES) streamNames.clear();
  streamNames.set(text, stream);
  return stream;
}

/** What a run wants of one of its keys. */
export function claimOf(
  run: QueuedRun,
  { definition }: LiveTask,
  { kind }: Pick<KeyName, 'kind'>,
): KeyClaim {
  const { id: run_id, taskId: task_id, trigger, priority, since } = run;
  const base = { run_id, task_id, trigger, priority, since };
  if (kind === 'overlap') return { ...base, limit: 1, attempt: 0 };
  // The attempt that its start will be of: see `startRun`.
  const attempt = run.state === 'queued' && run.attempt > 0 ? run.attempt : run.attempt + 1;
  return { ...base, limit: definition.concurrency_limit, attempt };
}

/**
 * By what the worker is chosen that is the first choice for a run: the runs of a key that one at a time may have go
 * to the same worker, which hands the key from one to the next without asking anybody.
 */
export function affinityOf(run: QueuedRun, task: LiveTask | undefined): string {
  const { concurrency_key: key, concurrency_limit: limit } = task?.definition ?? {};
  if (task === undefined || typeof key !== 'string' || limit !== 1) return run.id;
  const name = keysOf(task, run).find(({ kind }) => kind === 'concurrency');
  return name === undefined ? run.id : streamOf(name);
}
