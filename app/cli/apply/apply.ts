import type { Instant } from '../../../domain/clock.ts';
import { refusalOf } from './apply-check.ts';
import type { ApplyOptions } from './apply-command.ts';
import { readWanted, setTag, type WantedSet } from './apply-file.ts';
import { planOf, type Plan, type Step } from './apply-plan.ts';
import { CommandFault, exitCodes } from '../calling/faults.ts';
import { listAll } from '../calling/listing.ts';
import { printable } from '../terminal/paint.ts';
import type { TaskItem, TaskRecord } from '../calling/records.ts';
import type { Session } from '../calling/session.ts';
import { part, readDocument } from '../terminal/values.ts';

/**
 * Does what is missing between the tasks of a set and a file, or only says what that is.
 *
 * @returns the exit code: of the first step that was refused, else 0
 */
export async function apply(
  session: Session,
  { file, dryRun = false }: ApplyOptions,
): Promise<number> {
  const document = await readDocument(file, session.surroundings);
  const wanted = readWanted(document, await session.caller());
  const plan = planOf(wanted, await presentTasks(session, wanted.set));
  const outcomes = dryRun
    ? plan.steps.map((step) => tried(step, session.clock.now()))
    : await carryOut(session, plan);
  report(session, wanted, plan, outcomes, dryRun);
  return outcomes.find(({ fault }) => fault !== null)?.exitCode ?? exitCodes.ok;
}

/** The tasks with a set's tag, with their payloads. */
export async function presentTasks(session: Session, set: string): Promise<readonly TaskRecord[]> {
  const query = { tag: setTag(set) };
  const { items } = await listAll<TaskItem>(session.client, '/tasks', query, { all: true });
  return wholeTasks(session, items);
}

/** What became of a step. */
export interface Outcome {
  readonly step: Step;
  /** Of a task that was created, too. */
  readonly taskId: string | null;
  readonly fault: string | null;
  readonly exitCode: number;
}

const planned = (step: Step): Outcome => ({
  step,
  taskId: step.kind === 'create' ? null : step.task.id,
  fault: null,
  exitCode: exitCodes.ok,
});

/** What becomes of a step as far as that can be told without doing it. */
function tried(step: Step, now: Instant): Outcome {
  const fault = refusalOf(step, now);
  return { ...planned(step), fault, exitCode: fault === null ? exitCodes.ok : exitCodes.usage };
}

/** Does all it can: what the service refuses of one task keeps no other from being as it should. */
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
      outcomes.push({ ...planned(step), taskId: await carryOutOne(session, step) });
    } catch (error) {
      // Who may not, or whom nobody answers, will not fare better with the next one.
      const hopeless = [exitCodes.notAuthorized, exitCodes.unavailable] as readonly number[];
      if (!(error instanceof CommandFault) || hopeless.includes(error.exitCode)) throw error;
      failed.add(name);
      outcomes.push({ ...planned(step), fault: error.message, exitCode: error.exitCode });
    }
  }
  return outcomes;
}

async function carryOutOne({ client }: Session, step: Step): Promise<string> {
  if (step.kind === 'create') {
    const { fields, paused } = step.wanted;
    const { id } = await client.post<TaskRecord>('/tasks', { body: fields });
    if (paused) await client.ask((api) => api.tasks.pause(id));
    return id;
  }
  const { task, kind } = step;
  if (kind === 'change') {
    // Pausing it first has moved its revision by one; else it must be as it was when this was decided.
    const current = await client.ask((api) => api.tasks.get(task.id));
    const moved = current.revision - task.revision;
    const ifMatch =
      current.status !== task.status && moved === 1 ? current.revision : task.revision;
    await client.put(`/tasks/${part(task.id)}`, { body: step.changes, ifMatch });
  } else {
    await client.ask((api) => api.tasks[kind](task.id));
  }
  return task.id;
}

/** Tasks with their payloads: a list leaves out large ones, which could then not be compared. */
async function wholeTasks(
  { client }: Session,
  items: readonly TaskItem[],
): Promise<readonly TaskRecord[]> {
  const tasks: TaskRecord[] = [];
  for (const item of items) {
    tasks.push(isWhole(item) ? item : await client.ask((api) => api.tasks.get(item.id)));
  }
  return tasks;
}

/** Every payload has a pipeline. */
function isWhole(item: TaskItem): item is TaskItem & TaskRecord {
  return 'pipeline' in item.payload;
}

const nameOf = (step: Step): string => (step.kind === 'create' ? step.wanted.name : step.name);

function report(
  session: Session,
  { set }: WantedSet,
  { unchanged }: Plan,
  outcomes: readonly Outcome[],
  dryRun: boolean,
): void {
  const steps = outcomes.map(({ step, taskId, fault }) => ({
    action: step.kind,
    name: nameOf(step),
    task_id: taskId,
    ...(step.kind === 'change' ? { changes: step.changes } : {}),
    error: fault,
  }));
  session.answer({ set, dry_run: dryRun, unchanged, steps }, () => {
    const lines = outcomes.flatMap((outcome) => linesOf(session, outcome));
    const failed = outcomes.filter(({ fault }) => fault !== null).length;
    const done = outcomes.length - failed;
    const what = dryRun ? 'to do' : 'done';
    const end = `${set}: ${done} ${what}, ${unchanged} as they should be${failed === 0 ? '' : `, ${failed} refused`}`;
    return [...lines, end].join('\n');
  });
}

const marks = { create: '+', change: '~', pause: '~', resume: '~', cancel: '-' } as const;

function linesOf({ paint }: Session, { step, taskId, fault }: Outcome): string[] {
  const id = taskId === null ? '' : ` ${paint.faint(taskId)}`;
  const why = step.kind === 'cancel' ? `: ${step.why}` : '';
  const by = { '+': paint.good, '-': paint.bad, '~': paint.warning }[marks[step.kind]];
  const head = `${by(`${marks[step.kind]} ${step.kind}`)} ${nameOf(step)}${id}${why}`;
  const changes =
    step.kind === 'change'
      ? Object.entries(step.changes).map(([field, value]) => {
          const before = (step.task as unknown as Readonly<Record<string, unknown>>)[field];
          return `    ${field}: ${shown(before)} → ${shown(value)}`;
        })
      : [];
  return [head, ...changes, ...(fault === null ? [] : [`    ${paint.bad(printable(fault))}`])];
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'none';
  return printable(text.length > 120 ? `${text.slice(0, 119)}…` : text);
}
