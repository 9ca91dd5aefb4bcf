import { isDeepStrictEqual } from 'node:util';
import { parseInstant, type DayEdge } from '../../../domain/schedule/timestamp.ts';
import { nameIn, type WantedSet, type WantedTask } from './apply-file.ts';
import type { TaskRecord } from '../calling/records.ts';

/** One thing to do, so that the store matches the file. */
export type Step =
  | { readonly kind: 'create'; readonly wanted: WantedTask }
  | {
      readonly kind: 'change';
      readonly name: string;
      readonly task: TaskRecord;
      readonly changes: Readonly<Record<string, unknown>>;
    }
  | { readonly kind: 'pause' | 'resume'; readonly name: string; readonly task: TaskRecord }
  | {
      readonly kind: 'cancel';
      readonly name: string;
      readonly task: TaskRecord;
      readonly why: string;
    };

export interface Plan {
  readonly steps: readonly Step[];
  /** How many tasks are as they should be. */
  readonly unchanged: number;
}

/**
 * What to do so that the living tasks of a set are those of the file: create what is not there, change what differs,
 * cancel what the file does not have (any more). Pure.
 *
 * @param present the tasks with the set's tag; canceled ones are as if they were not there
 */
export function planOf({ set, tasks }: WantedSet, present: readonly TaskRecord[]): Plan {
  const living = present
    .filter(({ status }) => status !== 'canceled')
    // The oldest first: of two with one name (two applied at once) it is the one that stays.
    .sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
  const byName = new Map<string, TaskRecord>();
  const cancels: Step[] = [];
  const wantedNames = new Set(tasks.map(({ name }) => name));
  for (const task of living) {
    const name = nameIn(set, task.tags);
    if (name === null) continue;
    if (!wantedNames.has(name)) {
      cancels.push({ kind: 'cancel', name, task, why: 'is not in the file' });
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

function stepsFor(wanted: WantedTask, task: TaskRecord): Step[] {
  const { name, paused } = wanted;
  const changes = differences(wanted.fields, task);
  const steps: Step[] = [];
  // Before the change: a task that is to rest must not fire by its new schedule first.
  if (paused && task.status === 'active') steps.push({ kind: 'pause', name, task });
  if (Object.keys(changes).length > 0) steps.push({ kind: 'change', name, task, changes });
  if (!paused && task.status === 'paused') steps.push({ kind: 'resume', name, task });
  return steps;
}

/** The fields that are not as they are wanted, with what is wanted. */
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
  // The service keeps these in UTC, however they were written.
  const instants = field === 'starts_at' || field === 'ends_at';
  if (instants && typeof wanted === 'string' && typeof present === 'string') {
    const edge = field === 'ends_at' ? 'last' : 'first';
    return instantOf(wanted, zone, edge) === instantOf(present, zone, edge);
  }
  return false;
}

/** NaN for what is no timestamp: the service will say so. */
function instantOf(text: string, zone: string, edge: DayEdge): number {
  try {
    return parseInstant(text, zone, edge);
  } catch {
    return Number.NaN;
  }
}
