import { isDeepStrictEqual } from 'node:util';
import { parseInstant, type DayEdge } from '../../../domain/schedule/timestamp.ts';
import { nameIn, type DesiredSet, type DesiredTask } from './apply-file.ts';
import type { TaskRecord } from '../calling/records.ts';

/** A change that brings a task in line with the file. */
export type Step =
  | { readonly kind: 'create'; readonly wanted: DesiredTask }
  | ({
      readonly kind: 'change';
      readonly changes: Readonly<Record<string, unknown>>;
    } & PresentTask)
  | ({ readonly kind: 'pause' | 'resume' } & PresentTask)
  | ({ readonly kind: 'cancel'; readonly why: string } & PresentTask);

interface PresentTask {
  readonly name: string;
  readonly task: TaskRecord;
}

export interface Plan {
  readonly steps: readonly Step[];
  /** Number of tasks that match the file already. */
  readonly unchanged: number;
}

/** The name of a step's task in its set. */
export const nameOf = (step: Step): string =>
  step.kind === 'create' ? step.wanted.name : step.name;

/**
 * The steps that make a set match the file: create missing tasks, change different ones, cancel the others. Pure.
 * @param present the tasks with the set's tag; canceled ones are ignored
 */
export function planOf({ set, tasks }: DesiredSet, present: readonly TaskRecord[]): Plan {
  const living = present
    .filter(({ status }) => status !== 'canceled')
    // Oldest first: of two tasks with one name, from concurrent applications, the oldest stays.
    .sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
  const byName = new Map<string, TaskRecord>();
  const cancels: Step[] = [];
  const wantedNames = new Set(tasks.map(({ name }) => name));
  for (const task of living) {
    const name = nameIn(set, task.tags);
    if (name === null) continue;
    if (!wantedNames.has(name)) {
      cancels.push({ kind: 'cancel', name, task, why: 'not in the file' });
    } else if (byName.has(name)) {
      cancels.push({ kind: 'cancel', name, task, why: 'an older task has this name' });
    } else {
      byName.set(name, task);
    }
  }
  let unchanged = 0;
  const steps = tasks.flatMap((wanted): Step[] => {
    const task = byName.get(wanted.name);
    if (task === undefined) return [{ kind: 'create', wanted }];
    const needed = stepsFor(wanted, task);
    if (needed.length === 0) unchanged += 1;
    return needed;
  });
  return { steps: [...steps, ...cancels], unchanged };
}

function stepsFor(wanted: DesiredTask, task: TaskRecord): Step[] {
  const { name, paused } = wanted;
  const changes = differences(wanted.fields, task);
  const steps: Step[] = [];
  // The pause comes first, so that the task does not fire by its new schedule.
  if (paused && task.status === 'active') steps.push({ kind: 'pause', name, task });
  if (Object.keys(changes).length > 0) steps.push({ kind: 'change', name, task, changes });
  if (!paused && task.status === 'paused') steps.push({ kind: 'resume', name, task });
  return steps;
}

/** The desired values of the fields that differ. */
function differences(
  fields: Readonly<Record<string, unknown>>,
  task: TaskRecord,
): Record<string, unknown> {
  const present = task as unknown as Readonly<Record<string, unknown>>;
  const zone = typeof fields['timezone'] === 'string' ? fields['timezone'] : 'UTC';
  const differing = Object.entries(fields).filter(
    ([field, value]) => !isSame(field, value, present[field], zone),
  );
  return Object.fromEntries(differing);
}

function isSame(field: string, wanted: unknown, present: unknown, zone: string): boolean {
  if (isDeepStrictEqual(wanted, present)) return true;
  if (field === 'tags' && Array.isArray(wanted) && Array.isArray(present)) {
    return isDeepStrictEqual([...wanted].sort(), [...present].sort());
  }
  if (field === 'created_by') return String(wanted).toLowerCase() === present;
  // The service stores these in UTC.
  const instants = field === 'starts_at' || field === 'ends_at';
  if (instants && typeof wanted === 'string' && typeof present === 'string') {
    const edge = field === 'ends_at' ? 'last' : 'first';
    return instantOf(wanted, zone, edge) === instantOf(present, zone, edge);
  }
  return false;
}

/** NaN for an invalid timestamp, which the service rejects. */
function instantOf(text: string, zone: string, edge: DayEdge): number {
  try {
    return parseInstant(text, zone, edge);
  } catch {
    return Number.NaN;
  }
}
