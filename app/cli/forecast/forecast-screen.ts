import { toIso, type Instant } from '../../../domain/clock.ts';
import { counted as countOf } from '../../../domain/explain/words.ts';
import { table, type Column } from '../terminal/table.ts';
import { HOUR, type Forecast, type Peak } from './forecast.ts';
import { printable, type Paint } from '../terminal/paint.ts';
import { columnPlot, sparkline } from '../terminal/plot.ts';
import { shortTime } from '../terminal/times.ts';

const HEIGHT = 8;

const dayOf = (at: Instant): string => toIso(at).slice(0, 10);
const hourOf = (at: Instant): number => Math.floor(at / HOUR) % 24;
const counted = (fires: number): string => fires.toLocaleString('en-US');

/** A forecast as a terminal shows it: the plot, a line for each day (or hour), the peaks, and what is left out. */
export function showForecast(
  forecast: Forecast,
  titles: ReadonlyMap<string, string>,
  {
    paint,
    width,
    hourly,
  }: { readonly paint: Paint; readonly width: number; readonly hourly: boolean },
): string {
  const { from, to, total, tasks, hours } = forecast;
  const span = `${shortTime(toIso(from))} to ${shortTime(toIso(to))}`;
  const parts = [
    `${countOf(total, 'fire')} of ${countOf(tasks.counted, 'active task')}, ${span}`,
    `${paint.strong('Fires per hour')} (UTC)\n${plotOf(forecast, width)}`,
    hourly ? hoursOf(hours) : daysOf(hours),
  ];
  const peaks = (title: string, of: readonly Peak[], note = ''): void => {
    if (of.length > 0) parts.push(`${paint.strong(title)}${note}\n${peaksOf(of, titles)}`);
  };
  peaks('Busiest hours', forecast.busiestHours);
  const note = forecast.minutesProven
    ? ''
    : paint.faint(' (as far as the busiest hours were looked into)');
  peaks('Busiest minutes', forecast.busiestMinutes, note);
  parts.push(paint.faint(notes(tasks).join('\n')));
  return parts.join('\n\n');
}

function plotOf({ hours }: Forecast, width: number): string {
  return columnPlot({
    values: hours.map(({ fires }) => fires),
    width: Math.max(24, width - 10),
    height: HEIGHT,
    label: (index) => {
      const hour = hours[index];
      if (hour === undefined || (index > 0 && hourOf(hour.at) !== 0)) return null;
      return dayOf(hour.at).slice(5);
    },
  });
}

function hoursOf(hours: Forecast['hours']): string {
  const most = Math.max(...hours.map(({ fires }) => fires));
  const columns: Column[] = [{ title: 'HOUR' }, { title: 'FIRES', align: 'right' }, { title: '' }];
  return table(
    columns,
    hours.map(({ at, fires }) => [
      shortTime(toIso(at)),
      counted(fires),
      '█'.repeat(fires === 0 ? 0 : Math.max(1, Math.round((fires / most) * 40))),
    ]),
  );
}

/** A line for each day, the hours in it as a line of columns of their own. */
function daysOf(hours: Forecast['hours']): string {
  const most = Math.max(...hours.map(({ fires }) => fires));
  const days = new Map<string, { readonly at: Instant; readonly fires: number }[]>();
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
  const rows = [...days].map(([day, of]) => {
    const busiest = of.reduce((one, other) => (other.fires > one.fires ? other : one));
    const byHour = Array.from({ length: 24 }, (_, hour) =>
      of.filter(({ at }) => hourOf(at) === hour).reduce((sum, { fires }) => sum + fires, 0),
    );
    return [
      day,
      counted(of.reduce((sum, { fires }) => sum + fires, 0)),
      // A table keeps a cell on its line by joining blanks, which are hours here.
      sparkline(byHour, most).replaceAll(' ', '·'),
      busiest.fires === 0 ? '' : toIso(busiest.at).slice(11, 16),
      busiest.fires === 0 ? '' : counted(busiest.fires),
    ];
  });
  return table(columns, rows);
}

function peaksOf(peaks: readonly Peak[], titles: ReadonlyMap<string, string>): string {
  const columns: Column[] = [
    { title: 'AT' },
    { title: 'FIRES', align: 'right' },
    { title: 'OF THESE', align: 'right' },
    { title: 'BY', most: 44 },
    { title: 'SCHEDULE', most: 60 },
  ];
  let before = '';
  const rows = peaks.flatMap(({ at, fires, from }) => {
    const shares = from.map(({ fires: share, tasks, taskIds, scheduleText }) => [
      counted(share),
      named(taskIds, tasks, titles),
      scheduleText,
    ]);
    // What comes every day by the same tasks is listed once.
    const same = JSON.stringify(shares) === before;
    before = JSON.stringify(shares);
    return (same ? [['', 'the same', '']] : shares).map((share, index) => [
      index === 0 ? shortTime(toIso(at)).replace(/:00Z$/, 'Z') : '',
      index === 0 ? counted(fires) : '',
      ...share,
    ]);
  });
  return table(columns, rows);
}

function named(ids: readonly string[], tasks: number, titles: ReadonlyMap<string, string>): string {
  const [first = ''] = ids;
  const title = printable(titles.get(first) ?? first);
  return tasks === 1 ? title : `${counted(tasks)} tasks, such as ${title}`;
}

function notes(tasks: Forecast['tasks']): string[] {
  const said = [
    [tasks.paused, 'paused: not counted'],
    [tasks.byEvent, 'by event: nobody can say when'],
    [tasks.exhausted, 'without any fire ahead'],
    [tasks.unreadable, 'with a rule that can not be evaluated here'],
    [tasks.overdue, 'overdue: what the misfire policy makes of that is not counted'],
  ] as const;
  return [
    ...said.filter(([count]) => count > 0).map(([count, what]) => `${counted(count)} ${what}`),
    'Counted by when runs start, jitter and max_runs included; overlap, dedupe and event runs are not.',
  ];
}
