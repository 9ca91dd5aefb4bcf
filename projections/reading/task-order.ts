import { fromIso, type Instant } from '../../domain/clock.ts';
import type { TaskStatus } from '../../domain/vocabulary.ts';
import type { Reach } from '../reach.ts';
import type { FieldValue, Filter, ReadModel } from '../read-model.ts';
import { agentsProjection } from '../views/agents.ts';
import { statisticsOfTasks, statisticsProjection } from '../views/statistics.ts';
import { TASKS } from '../views/statistics-tasks.ts';
import { tasksProjection, type JoinedOrder } from '../views/tasks.ts';
import { healthOf, taskHealths, type HealthSigns, type TaskHealth } from './task-health.ts';

/**
 * The place of a task in an order. Places are compared value by value, ascending, and then by key, the newest task
 * first.
 */
export interface TaskPlace {
  readonly values: readonly number[];
  readonly key: string;
}

/** The facts that determine the places of tasks. */
interface Asked {
  readonly readModel: ReadModel;
  readonly reach: Reach;
  /** Filters of {@link tasksProjection}. */
  readonly filters: readonly Filter[];
  readonly now: Instant;
}

/**
 * All tasks that match, in an order that also depends on other views. Only the compared fields are read. That takes
 * tens of milliseconds for ten thousand tasks, regardless of the number of runs.
 */
export async function orderedTasks(
  order: JoinedOrder,
  asked: Asked,
): Promise<readonly TaskPlace[]> {
  return (await placesOf[order](asked)).toSorted(comparePlaces);
}

/** Negative where the first place comes before the second. */
export function comparePlaces(one: TaskPlace, other: TaskPlace): number {
  for (const [n, value] of one.values.entries()) {
    const compared = value - (other.values[n] ?? 0);
    if (compared !== 0) return compared;
  }
  return one.key > other.key ? -1 : one.key < other.key ? 1 : 0;
}

const placesOf: Record<JoinedOrder, (asked: Asked) => Promise<TaskPlace[]>> = {
  owner: byOwner,
  p95: bySlowness,
  health: byHealth,
};

/**
 * Orders by the name of the owner; tasks of removed agents are last. Clients see places, so a place contains a rank
 * instead of a name. The rank counts only the owners of these tasks: a rank among all agents would reveal something
 * about other namespaces.
 */
async function byOwner({ readModel, filters }: Asked): Promise<TaskPlace[]> {
  const [tasks, agents] = await Promise.all([
    readModel.values(tasksProjection, { filters, fields: ['created_by'] }),
    readModel.values(agentsProjection, { filters: [], fields: ['name'] }),
  ]);
  const owners = new Set(tasks.map(({ values: [owner] }) => owner));
  const named = agents
    .filter(({ key }) => owners.has(key))
    .map(({ key, values: [name] }) => ({ key, name: String(name).toLowerCase() }));
  const sorted = [...new Set(named.map(({ name }) => name))].sort();
  const ranks = new Map(sorted.map((name, rank) => [name, rank]));
  const rankOf = new Map(named.map(({ key, name }) => [key, ranks.get(name) ?? 0]));
  return tasks.map(({ key, values: [owner] }) => {
    return { key, values: [rankOf.get(String(owner)) ?? sorted.length] };
  });
}

/** The slowest first; those without a duration last. */
async function bySlowness({ readModel, reach, filters }: Asked): Promise<TaskPlace[]> {
  const [tasks, known] = await Promise.all([
    readModel.values(tasksProjection, { filters, fields: [] }),
    statisticsBy(readModel, reach, ['p95_ms']),
  ]);
  return tasks.map(({ key }) => {
    const p95 = known.get(key)?.[0] ?? null;
    return { key, values: [p95 === null ? 1 : -Number(p95)] };
  });
}

/**
 * The worst first. Among failing tasks, the latest to fail is first; among overdue tasks, the one that was due first.
 */
async function byHealth({ readModel, reach, filters, now }: Asked): Promise<TaskPlace[]> {
  const fields = ['status', 'next_run_at', 'exhausted'];
  const [tasks, known] = await Promise.all([
    readModel.values(tasksProjection, { filters, fields }),
    statisticsBy(readModel, reach, ['day', 'failing', 'failed_day']),
  ]);
  return tasks.map(({ key, values }) => {
    const [status, next_run_at, exhausted] = values as [TaskStatus, string | null, boolean];
    const [day, failing, failed_day] = (known.get(key) ?? [null, null, null]) as Texts;
    const signs = { status, next_run_at, exhausted, day, failing, failed_day };
    const health = healthOf(signs, now);
    return { key, values: [taskHealths.indexOf(health), urgencyOf(health, signs)] };
  });
}

type Texts = readonly [day: string | null, failing: string | null, failed_day: string | null];

function urgencyOf(health: TaskHealth, { failing, next_run_at }: HealthSigns): number {
  if (health === 'failing' && failing !== null) return -fromIso(failing);
  return health === 'overdue' && next_run_at !== null ? fromIso(next_run_at) : 0;
}

/** Fields of the statistics of tasks, by the id of the task. */
async function statisticsBy(
  readModel: ReadModel,
  reach: Reach,
  fields: readonly string[],
): Promise<ReadonlyMap<string, readonly FieldValue[]>> {
  const filters = statisticsOfTasks(reach);
  const found = await readModel.values(statisticsProjection, { filters, fields });
  return new Map(found.map(({ key, values }) => [key.slice(TASKS.length + 1), values]));
}
