import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { toIso } from '../../domain/clock.ts';
import type { TaskDefinition } from '../../domain/tasks/task-definition.ts';
import { makeBenchFolder } from '../bench-folder.ts';
import { BenchStore } from '../bench-service.ts';
import { makeTaskViews } from './idle.ts';

/** Says of a kept folder that it is whole, and what is in it. */
const NOTE = 'many-tasks.json';

/** Commands that are under way at a time. */
const CHUNK = 2_000;

/** Tasks that are due each minute, at a second of their own: one fire a second. */
const FREQUENT = 60;

/** The other tasks are due so long after the store was made, and from then on over {@link SPREAD}. Milliseconds. */
const QUIET = 6 * 3_600_000;
const SPREAD = 16 * 3_600_000;
/** What is due sooner is too near to be measured beside. Milliseconds. */
const LEFT = 900_000;

/** Tasks that are remembered by their ids, for changing them. */
const REMEMBERED = 1_000;

const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu'] as const;

/** A folder with the log and the views of many active tasks. */
export interface ManyTasks {
  readonly directory: string;
  readonly tasks: number;
  /** Until when only the tasks of each minute are due. */
  readonly quietUntil: number;
  /** Some of the tasks, from all over the store. */
  readonly ids: readonly string[];
}

/** Of one size, for all repeats of this process; they go with the other folders. */
const made = new Map<number, ManyTasks>();

/**
 * The store of so many active tasks with a schedule: cron and rrule, daily in four zones, and 60 that are due each minute.
 *
 * @param kept a folder that stays: made where it is not there, used again where it is, and made anew where what is in it
 *   will be due soon
 * @throws Error when the kept folder is of another number of tasks, or holds something else
 */
export async function manyTasksStore(tasks: number, kept?: string): Promise<ManyTasks> {
  if (kept !== undefined) return keptStore(tasks, kept);
  const known = made.get(tasks);
  if (known !== undefined && isQuiet(known)) return known;
  const store = await make(tasks, await makeBenchFolder('tasks'));
  made.set(tasks, store);
  return store;
}

async function keptStore(tasks: number, directory: string): Promise<ManyTasks> {
  const note = join(directory, NOTE);
  if (existsSync(note)) {
    const found = JSON.parse(await readFile(note, 'utf8')) as Omit<ManyTasks, 'directory'>;
    if (found.tasks !== tasks) throw new Error(`there are ${found.tasks} tasks in ${directory}`);
    if (isQuiet(found)) return { ...found, directory };
    await rm(directory, { recursive: true });
  }
  await mkdir(directory, { recursive: true });
  if ((await readdir(directory)).length > 0) {
    throw new Error(`the folder ${directory} is not empty, and no whole store of this benchmark`);
  }
  const store = await make(tasks, directory);
  const { directory: _place, ...about } = store;
  await writeFile(note, JSON.stringify(about));
  return store;
}

const isQuiet = ({ quietUntil }: Pick<ManyTasks, 'quietUntil'>): boolean =>
  Date.now() < quietUntil - LEFT;

async function make(tasks: number, directory: string): Promise<ManyTasks> {
  const bench = await BenchStore.open(directory);
  try {
    const quietUntil = Date.now() + QUIET;
    const ids: string[] = [];
    for (let from = 0; from < tasks; from += CHUNK) {
      const chunk = Array.from({ length: Math.min(CHUNK, tasks - from) }, (_, at) => from + at);
      const created = await Promise.all(
        chunk.map((index) => bench.createTask(definitionOf(index, tasks, quietUntil))),
      );
      for (const { id } of created) ids.push(id);
    }
    await makeTaskViews(bench, tasks);
    const daily = ids.slice(FREQUENT);
    const every = Math.max(1, Math.floor(daily.length / REMEMBERED));
    return { directory, tasks, quietUntil, ids: daily.filter((_, index) => index % every === 0) };
  } finally {
    await bench.close();
  }
}

function definitionOf(index: number, tasks: number, quietUntil: number): Partial<TaskDefinition> {
  const title = `report ${index}`;
  const cron = { title, schedule_kind: 'cron' } as const;
  if (index < FREQUENT) return { ...cron, schedule_expr: `${index} * * * * *` };
  const at = quietUntil + Math.floor((SPREAD * index) / tasks);
  const timezone = zones[index % zones.length] ?? 'UTC';
  const { hour, minute } = wallTime(at, timezone);
  if (index % 3 !== 0) return { ...cron, timezone, schedule_expr: `${minute} ${hour} * * *` };
  const rule = `RRULE:FREQ=DAILY;BYHOUR=${hour};BYMINUTE=${minute};BYSECOND=0`;
  return { title, timezone, schedule_kind: 'rrule', schedule_expr: rule };
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** What a clock shows in a zone at an instant. */
function wallTime(at: number, timezone: string): { hour: number; minute: number } {
  const format =
    formats.get(timezone) ??
    new Intl.DateTimeFormat('en-GB', { timeZone: timezone, hour: '2-digit', minute: '2-digit' });
  formats.set(timezone, format);
  const [hour, minute] = format.format(at).split(':').map(Number);
  if (hour === undefined || minute === undefined) throw new Error(`no time at ${toIso(at)}`);
  return { hour: hour % 24, minute };
}
