import { toIso } from '../../../domain/clock.ts';
import { resolveTimestamp, TimestampError } from '../../../domain/schedule/timestamp.ts';
import { tasksProjection } from '../../../projections/views/tasks.ts';
import type { Stores } from '../../stores.ts';
import { usageFault } from '../calling/faults.ts';
import { onStore, storeSettings } from '../calling/on-store.ts';
import type { Session } from '../calling/session.ts';
import { Forecaster, type Forecast, type Peak } from './forecast.ts';
import { showForecast } from './forecast-screen.ts';
import { presentRhythms } from './present-rhythms.ts';
import type { SimulateOptions } from './simulate-command.ts';

const DAY = 86_400_000;

/** Reads the tasks that there are from the store, and says what they would fire. */
export async function simulate(session: Session, options: SimulateOptions): Promise<void> {
  const { surroundings, clock } = session;
  const { signal } = surroundings;
  const now = clock.now();
  const from = options.from === undefined ? now : startOf(options.from, now);
  const settings = storeSettings(surroundings.env, options.dataDir);
  const { forecast, titles } = await onStore(settings, async (stores) => {
    const forecaster = new Forecaster(now, from, from + options.days * DAY);
    for await (const { taskId, rhythm } of presentRhythms(stores.store, stores.readModel, signal)) {
      forecaster.add(taskId, rhythm);
    }
    const counted = forecaster.count();
    return { forecast: counted, titles: await titlesOf(counted, stores) };
  });
  session.answer(asJson(forecast, titles), () =>
    showForecast(forecast, titles, {
      paint: session.paint,
      width: surroundings.out.columns ?? 100,
      hourly: options.hourly ?? false,
    }),
  );
}

function startOf(text: string, now: number): number {
  try {
    const { at } = resolveTimestamp(text, 'UTC');
    if (at >= now) return at;
  } catch (error) {
    if (error instanceof TimestampError) throw usageFault(`--from: ${error.message}`);
    throw error;
  }
  throw usageFault('--from lies in the past; what did fire is told by svc runs list');
}

/** The titles of the tasks that are named, as far as a view has them. */
async function titlesOf(
  { busiestHours, busiestMinutes }: Forecast,
  { readModel }: Stores,
): Promise<ReadonlyMap<string, string>> {
  const named = [...busiestHours, ...busiestMinutes].flatMap(({ from }) =>
    from.flatMap(({ taskIds }) => taskIds),
  );
  const titles = new Map<string, string>();
  for (const taskId of new Set(named)) {
    const kept = await readModel.get(tasksProjection, taskId).catch(() => null);
    if (kept !== null) titles.set(taskId, kept.document.title);
  }
  return titles;
}

function asJson(forecast: Forecast, titles: ReadonlyMap<string, string>): object {
  const peaks = (of: readonly Peak[]): object[] =>
    of.map(({ at, fires, from }) => ({
      at: toIso(at),
      fires,
      from: from.map(({ taskIds, tasks, rule, scheduleText, fires: share }) => ({
        fires: share,
        tasks,
        rule,
        schedule_text: scheduleText,
        examples: taskIds.map((id) => ({ task_id: id, title: titles.get(id) ?? null })),
      })),
    }));
  const { counted, paused, byEvent, exhausted, unreadable, overdue } = forecast.tasks;
  return {
    from: toIso(forecast.from),
    to: toIso(forecast.to),
    total: forecast.total,
    tasks: { counted, paused, by_event: byEvent, exhausted, unreadable, overdue },
    busiest_hours: peaks(forecast.busiestHours),
    busiest_minutes: peaks(forecast.busiestMinutes),
    busiest_minutes_proven: forecast.minutesProven,
    hours: forecast.hours.map(({ at, fires }) => ({ at: toIso(at), fires })),
  };
}
