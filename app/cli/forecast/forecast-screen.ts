import { toIso, type Instant } from '../../../domain/clock.ts';
import { counted } from '../../../domain/explain/words.ts';
import { columnChart, sparkline } from '../terminal/charts.ts';
import { printable, type Paint } from '../terminal/paint.ts';
import { table, type Column } from '../terminal/table.ts';
import { shortTime } from '../terminal/units.ts';
import { HOUR, type Forecast, type Peak } from './forecast.ts';

const CHART_HEIGHT = 8;

const dayOf = (at: Instant): string => toIso(at).slice(0, 10);
const hourOf = (at: Instant): number => Math.floor(at / HOUR) % 24;
const grouped = (count: number): string => count.toLocaleString('en-US');
const maxFires = (hours: Forecast['hours']): number => Math.max(...hours.map(({ fires }) => fires));

/** Formats a forecast: a chart, a line for each day or hour, the peaks and the tasks left out. */
export function showForecast(
  forecast: Forecast,
  titles: ReadonlyMap<string, string>,
  screen: { readonly paint: Paint; readonly width: number; readonly hourly: boolean },
): string {
  const { paint } = screen;
  const { from, to, total, tasks, hours } = forecast;
  const span = `${shortTime(toIso(from))} to ${shortTime(toIso(to))}`;
  const parts = [
    `${counted(total, 'fire')} of ${counted(tasks.counted, 'active task')}, ${span}`,
    `${paint.strong('Fires per hour')} (UTC)\n${chartOf(hours, screen.width)}`,
    screen.hourly ? hoursOf(hours) : daysOf(hours),
  ];
  const addPeaks = (title: string, peaks: readonly Peak[], note = ''): void => {
    if (peaks.length > 0) parts.push(`${paint.strong(title)}${note}\n${peaksOf(peaks, titles)}`);
  };
  addPeaks('Busiest hours', forecast.busiestHours);
  const note = forecast.minutesProven ? '' : paint.faint(' (of the busiest hours only)');
  addPeaks('Busiest minutes', forecast.busiestMinutes, note);
  parts.push(paint.faint(notes(tasks).join('\n')));
  return parts.join('\n\n');
}

const chartOf = (hours: Forecast['hours'], width: number): string =>
  columnChart({
    values: hours.map(({ fires }) => fires),
    width: Math.max(24, width - 10),
    height: CHART_HEIGHT,
    label: (index) => {
      const hour = hours[index];
      if (hour === undefined || (index > 0 && hourOf(hour.at) !== 0)) return null;
      return dayOf(hour.at).slice(5);
    },
  });

function hoursOf(hours: Forecast['hours']): string {
  const max = maxFires(hours);
  const columns: Column[] = [{ title: 'HOUR' }, { title: 'FIRES', align: 'right' }, { title: '' }];
  return table(
    columns,
    hours.map(({ at, fires }) => [
      shortTime(toIso(at)),
      grouped(fires),
      '█'.repeat(fires === 0 ? 0 : Math.max(1, Math.round((fires / max) * 40))),
    ]),
  );
}

/** A line for each day, with a chart of its hours. */
function daysOf(hours: Forecast['hours']): string {
  const max = maxFires(hours);
  const days = new Map<string, Forecast['hours'][number][]>();
  for (const hour of hours) {
    const day = dayOf(hour.at);
    days.set(day, [...(days.get(day) ?? []), hour]);
  }
  const columns: Column[] = [
    { title: 'DAY' },
    { title: 'FIRES', align: 'right' },
    { title: '00    06    12    18' },
    { title: 'BUSIEST' },
    { title: 'FIRES', align: 'right' },
  ];
  const rows = [...days].map(([day, ofDay]) => {
    const busiest = ofDay.reduce((one, other) => (other.fires > one.fires ? other : one));
    const byHour = Array.from({ length: 24 }, (_, hour) =>
      ofDay.filter(({ at }) => hourOf(at) === hour).reduce((sum, { fires }) => sum + fires, 0),
    );
    return [
      day,
      grouped(ofDay.reduce((sum, { fires }) => sum + fires, 0)),
      // A table would join blanks, but each blank stands for an hour here.
      sparkline(byHour, max).replaceAll(' ', '·'),
      busiest.fires === 0 ? '' : toIso(busiest.at).slice(11, 16),
      busiest.fires === 0 ? '' : grouped(busiest.fires),
    ];
  });
  return table(columns, rows);
}

function peaksOf(peaks: readonly Peak[], titles: ReadonlyMap<string, string>): string {
  const columns: Column[] = [
    { title: 'AT' },
    { title: 'FIRES', align: 'right' },
    { title: 'OF THESE', align: 'right' },
    { title: 'BY', maxWidth: 44 },
    { title: 'SCHEDULE', maxWidth: 60 },
  ];
  let previous = '';
  const rows = peaks.flatMap(({ at, fires, from }) => {
    const shares = from.map(({ fires: share, tasks, taskIds, scheduleText }) => [
      grouped(share),
      nameOf(taskIds, tasks, titles),
      scheduleText,
    ]);
    // The same tasks are listed once.
    const isRepeated = JSON.stringify(shares) === previous;
    previous = JSON.stringify(shares);
    return (isRepeated ? [['', 'the same', '']] : shares).map((share, index) => [
      index === 0 ? shortTime(toIso(at)).replace(/:00Z$/, 'Z') : '',
      index === 0 ? grouped(fires) : '',
      ...share,
    ]);
  });
  return table(columns, rows);
}

function nameOf(
  ids: readonly string[],
  tasks: number,
  titles: ReadonlyMap<string, string>,
): string {
  const [first = ''] = ids;
  const title = printable(titles.get(first) ?? first);
  return tasks === 1 ? title : `${grouped(tasks)} tasks, such as ${title}`;
}

function notes(tasks: Forecast['tasks']): string[] {
  const leftOut = [
    [tasks.paused, 'paused: not counted'],
    [tasks.byEvent, 'event-driven: not predictable'],
    [tasks.exhausted, 'exhausted: no fire ahead'],
    [tasks.unreadable, 'with a rule that cannot be evaluated here'],
    [tasks.overdue, 'overdue: runs of the misfire policy are not counted'],
  ] as const;
  return [
    ...leftOut.filter(([count]) => count > 0).map(([count, what]) => `${grouped(count)} ${what}`),
    'Counted by start of run, with jitter and max_runs; without overlap, dedupe and event runs.',
  ];
}
