import type { TaskItem } from '../../../api/client/client.ts';
import type { Instant } from '../../../domain/clock.ts';
import { CommandError, exitCodes } from '../calling/command-errors.ts';
import { readList } from '../calling/lists.ts';
import type { TaskRecord } from '../calling/records.ts';
import type { Session } from '../calling/session.ts';
import { printable } from '../terminal/paint.ts';
import { pathSegment, readDocument } from '../terminal/values.ts';
import { rejectionOf } from './apply-check.ts';
import { parseTaskSet, setTag } from './apply-file.ts';
import { nameOf, planOf, type Plan, type Step } from './apply-plan.ts';

/**
 * Makes the tasks of a set match a file, or shows what that would change.
 * Returns the exit code of the first rejected step, otherwise 0.
 */
export async function apply(session: Session, file: string, dryRun: boolean): Promise<number> {
  const document = await readDocument(file, session.environment);
  const desired = parseTaskSet(document, await session.caller());
  const { set } = desired;
  const plan = planOf(desired, await presentTasks(session, set));
  const { unchanged } = plan;
  const outcomes = dryRun
    ? plan.steps.map((step) => predict(step, session.clock.now()))
    : await carryOut(session, plan);
  const steps = outcomes.map(({ step, taskId, error }) => ({
    action: step.kind,
    name: nameOf(step),
    task_id: taskId,
    ...(step.kind === 'change' ? { changes: step.changes } : {}),
    error,
  }));
  session.answer({ set, dry_run: dryRun, unchanged, steps }, () => {
    const lines = outcomes.flatMap((outcome) => linesOf(session, outcome));
    const rejected = outcomes.filter(({ error }) => error !== null).length;
    const done = `${outcomes.length - rejected} ${dryRun ? 'to do' : 'done'}`;
    const end = `${set}: ${done}, ${unchanged} unchanged`;
    return [...lines, end + (rejected === 0 ? '' : `, ${rejected} rejected`)].join('\n');
  });
  return outcomes.find(({ error }) => error !== null)?.exitCode ?? exitCodes.ok;
}

/** The tasks with a set's tag and their whole payloads; a list leaves out large ones, which could not be compared. */
export async function presentTasks(
  { client }: Session,
  set: string,
): Promise<readonly TaskRecord[]> {
  const { items } = await readList<TaskItem>(client, '/tasks', { tag: setTag(set) }, { all: true });
  const tasks: TaskRecord[] = [];
  for (const item of items) {
    tasks.push(hasPayload(item) ? item : await client.call((api) => api.tasks.get(item.id)));
  }
  return tasks;
}

const hasPayload = (item: TaskItem): item is TaskItem & TaskRecord => 'pipeline' in item.payload;

/** The result of a step. */
export interface Outcome {
  readonly step: Step;
  /** Null only for a task that was not created. */
  readonly taskId: string | null;
  /** Why the step was rejected. */
  readonly error: string | null;
  readonly exitCode: number;
}

const succeeded = (step: Step): Outcome => ({
  step,
  taskId: step.kind === 'create' ? null : step.task.id,
  error: null,
  exitCode: exitCodes.ok,
});

/** The result of a step as far as it can be known without doing it. */
function predict(step: Step, now: Instant): Outcome {
  const error = rejectionOf(step, now);
  return { ...succeeded(step), error, exitCode: error === null ? exitCodes.ok : exitCodes.usage };
}

/** Carries out all steps it can: a rejected step only stops the other steps of its task. */
export async function carryOut(
  session: Session,
  { steps }: Pick<Plan, 'steps'>,
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  const failed = new Set<string>();
  for (const step of steps) {
    const name = nameOf(step);
    if (failed.has(name) && step.kind !== 'cancel') continue;
    try {
      outcomes.push({ ...succeeded(step), taskId: await carryOutOne(session, step) });
    } catch (error) {
      // These errors would repeat for every other step.
      const fatal: readonly number[] = [exitCodes.notAuthorized, exitCodes.unavailable];
      if (!(error instanceof CommandError) || fatal.includes(error.exitCode)) throw error;
      failed.add(name);
      outcomes.push({ ...succeeded(step), error: error.message, exitCode: error.exitCode });
    }
  }
  return outcomes;
}

/** Returns the task's id. */
async function carryOutOne({ client }: Session, step: Step): Promise<string> {
  if (step.kind === 'create') {
    const { fields, paused } = step.wanted;
    const { id } = await client.post<TaskRecord>('/tasks', { body: fields });
    if (paused) await client.call((api) => api.tasks.pause(id));
    return id;
  }
  const { task, kind } = step;
  if (kind === 'change') {
    // An earlier pause has raised the revision by one; otherwise the task must be unchanged since the plan.
    const current = await client.call((api) => api.tasks.get(task.id));
    const wasPaused = current.status !== task.status && current.revision - task.revision === 1;
    const ifMatch = wasPaused ? current.revision : task.revision;
    await client.put(`/tasks/${pathSegment(task.id)}`, { body: step.changes, ifMatch });
  } else {
    await client.call((api) => api.tasks[kind](task.id));
  }
  return task.id;
}

function linesOf({ paint }: Session, { step, taskId, error }: Outcome): string[] {
  const id = taskId === null ? '' : ` ${paint.faint(taskId)}`;
  const why = step.kind === 'cancel' ? `: ${step.why}` : '';
  const head = {
    create: () => paint.good('+ create'),
    cancel: () => paint.bad('- cancel'),
    change: () => paint.warning('~ change'),
    pause: () => paint.warning('~ pause'),
    resume: () => paint.warning('~ resume'),
  }[step.kind]();
  const changes =
    step.kind === 'change'
      ? Object.entries(step.changes).map(([field, value]) => {
          const before = (step.task as unknown as Readonly<Record<string, unknown>>)[field];
          return `    ${field}: ${shorten(before)} → ${shorten(value)}`;
        })
      : [];
  const rejection = error === null ? [] : [`    ${paint.bad(printable(error))}`];
  return [`${head} ${nameOf(step)}${id}${why}`, ...changes, ...rejection];
}

function shorten(value: unknown): string {
  const json = JSON.stringify(value) ?? 'none';
  return printable(json.length > 120 ? `${json.slice(0, 119)}…` : json);
}
