import { toIso, type Instant } from '../../../domain/clock.ts';
import { resolveTimestamp, TimestampError } from '../../../domain/schedule/timestamp.ts';
import { tasksProjection } from '../../../projections/views/tasks.ts';
import type { Stores } from '../../stores.ts';
import { usageError } from '../calling/command-errors.ts';
import { storeSettings, withStores } from '../calling/open-stores.ts';
import type { Session } from '../calling/session.ts';
import { currentSchedules } from '../store/current-schedules.ts';
import { showForecast } from './forecast-screen.ts';
import { Forecaster, type Forecast, type Peak } from './forecast.ts';

const DAY = 86_400_000;

/** Reads the tasks from the stores and forecasts their fires. */
export async function simulate(
  session: Session,
  options: {
    readonly days: number;
    readonly from: string | undefined;
    readonly hourly: boolean | undefined;
    readonly dataDir: string | undefined;
  },
): Promise<void> {
  const { env, signal, out } = session.environment;
  const now = session.clock.now();
  const from = options.from === undefined ? now : startOf(options.from, now);
  const settings = storeSettings(env, options.dataDir);
  const { forecast, titles } = await withStores(settings, async (stores) => {
    const forecaster = new Forecaster(now, from, from + options.days * DAY);
    const schedules = currentSchedules(stores.store, stores.readModel, signal);
    for await (const { taskId, state: schedule } of schedules) forecaster.add(taskId, schedule);
    const counted = forecaster.count();
    return { forecast: counted, titles: await titlesOf(counted, stores) };
  });
  session.answer(asJson(forecast, titles), () =>
    showForecast(forecast, titles, {
      paint: session.paint,
      width: out.columns ?? 100,
      hourly: options.hourly ?? false,
    }),
  );
}

function startOf(text: string, now: Instant): Instant {
  try {
    const { at } = resolveTimestamp(text, 'UTC');
    if (at >= now) return at;
  } catch (error) {
    if (error instanceof TimestampError) throw usageError(`--from: ${error.message}`);
    throw error;
  }
  throw usageError('--from is in the past; for past runs use svc runs list');
}

/** The titles of the tasks in the peaks, as far as the view has them. */
async function titlesOf(
  { busiestHours, busiestMinutes }: Forecast,
  { readModel }: Stores,
): Promise<ReadonlyMap<string, string>> {
  const named = [...busiestHours, ...busiestMinutes].flatMap(({ from }) =>
    from.flatMap(({ taskIds }) => taskIds),
  );
  const titles = new Map<string, string>();
  for (const taskId of new Set(named)) {
    const found = await readModel.get(tasksProjection, taskId).catch(() => null);
    if (found !== null) titles.set(taskId, found.document.title);
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
