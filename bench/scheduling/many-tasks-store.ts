import { toIso } from '../../domain/clock.ts';
import type { TaskDefinition } from '../../domain/tasks/task-definition.ts';
import { makeBenchFolder } from '../bench-folder.ts';
import { BenchStore } from '../bench-service.ts';
import { inChunks } from '../log.ts';
import { buildTaskViews } from './idle.ts';

/** Tasks that are due each minute, each at its own second: one fire a second. */
const FREQUENT_TASKS = 60;
/** Milliseconds until the other tasks are due, and over which their fires are spread. */
const QUIET = 6 * 3_600_000;
const SPREAD = 16 * 3_600_000;
/** Milliseconds of quiet that a measurement needs. */
const MIN_QUIET = 900_000;
/** Tasks that can be changed. */
const CHANGEABLE_TASKS = 1_000;

const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu'] as const;

/** A folder with the log and views of many active tasks. */
interface ManyTasks {
  readonly directory: string;
  /** Until then only the frequent tasks are due. */
  readonly quietUntil: number;
  /** Some tasks from all over the store. */
  readonly ids: readonly string[];
}

/** Used by all repeats of this process. */
let made: ManyTasks | undefined;

/** The store with the given number of scheduled tasks: cron and rrule, daily in four zones, and 60 due each minute. */
export async function manyTasksStore(tasks: number): Promise<ManyTasks> {
  if (made === undefined || Date.now() > made.quietUntil - MIN_QUIET) made = await make(tasks);
  return made;
}

async function make(tasks: number): Promise<ManyTasks> {
  const directory = await makeBenchFolder('tasks');
  const bench = await BenchStore.open(directory);
  try {
    const quietUntil = Date.now() + QUIET;
    const created = await inChunks(tasks, 2_000, (index) =>
      bench.createTask(definitionOf(index, tasks, quietUntil)),
    );
    await buildTaskViews(bench, tasks);
    const daily = created.slice(FREQUENT_TASKS).map(({ id }) => id);
    const every = Math.max(1, Math.floor(daily.length / CHANGEABLE_TASKS));
    return { directory, quietUntil, ids: daily.filter((_, index) => index % every === 0) };
  } finally {
    await bench.close();
  }
}

function definitionOf(index: number, tasks: number, quietUntil: number): Partial<TaskDefinition> {
  const title = `report ${index}`;
  const cron = { title, schedule_kind: 'cron' } as const;
  if (index < FREQUENT_TASKS) return { ...cron, schedule_expr: `${index} * * * * *` };
  const at = quietUntil + Math.floor((SPREAD * index) / tasks);
  const timezone = zones[index % zones.length] ?? 'UTC';
  const { hour, minute } = wallTime(at, timezone);
  if (index % 3 !== 0) return { ...cron, timezone, schedule_expr: `${minute} ${hour} * * *` };
  const rule = `RRULE:FREQ=DAILY;BYHOUR=${hour};BYMINUTE=${minute};BYSECOND=0`;
  return { title, timezone, schedule_kind: 'rrule', schedule_expr: rule };
}

const formats = new Map(
  zones.map((timeZone) => [
    timeZone as string,
    new Intl.DateTimeFormat('en-GB', { timeZone, hour: '2-digit', minute: '2-digit' }),
  ]),
);

/** The local time of an instant in one of the zones. */
function wallTime(at: number, zone: string): { hour: number; minute: number } {
  const [hour, minute] = formats.get(zone)?.format(at).split(':').map(Number) ?? [];
  if (hour === undefined || minute === undefined) throw new Error(`no time at ${toIso(at)}`);
  return { hour: hour % 24, minute };
}
