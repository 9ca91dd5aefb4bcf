// The calendar of a task by year, month or day. The page's address holds the shown unit, date and explanation. A click
// on a fire or a gap explains it.

import { html, useState } from '../../preact.js';
import { setAddress } from '../../address.js';
import { getState, useStore } from '../../store.js';
import { count } from '../../times.js';
import { dateIn, shownZone } from '../../zones.js';
import { Button } from '../../ui/elements.js';
import { Loaded, Section } from '../../ui/layout.js';
import { useUpdates } from '../../ui/updates.js';
import { DayList } from './calendar-day.js';
import { readParts } from './calendar-data.js';
import { dateWords, step } from './calendar-dates.js';

const units = ['year', 'month', 'day'];
const titles = {
  year: (date) => date.slice(0, 4),
  month: (date) => dateWords(date, { month: 'long', year: 'numeric' }),
  day: (date) =>
    dateWords(date, { weekday: 'short', day: 'numeric', month: 'long', year: 'numeric' }),
};
const weekdays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
/** The kinds of fires and runs, with their tones and names. */
const kinds = [
  ['succeeded', 'good', 'succeeded'],
  ['failed', 'bad', 'failed'],
  ['unfinished', 'busy', 'unfinished'],
  ['skipped', 'wait', 'did not run'],
  ['canceled', 'stopped', 'canceled'],
];
/** The interval of reads for spans that have not passed, in milliseconds. */
const BEAT = 10_000;
const DATE = /^\d{4}-\d\d-\d\d$/;

/**
 * @param {URLSearchParams} query of the address: `by`, `date` and `at` say what is shown
 * @param {object} pausing the pause of the task's page
 */
export function Calendar({ task, version, query, pausing }) {
  const zone = useStore(shownZone);
  const today = dateIn(Date.now(), zone);
  const [shown, setShown] = useState(() => ({
    by: units.includes(query.get('by')) ? query.get('by') : 'month',
    date: DATE.test(query.get('date') ?? '') ? query.get('date') : today,
    at: query.get('at'),
  }));
  /** Another day, month or year adds an entry to the browser's history. Another explanation adds none. */
  const show = (changes) => {
    const next = { ...shown, ...changes };
    setShown(next);
    // The address also holds the question of the explanation below.
    const parameters = new URLSearchParams(getState().address.query);
    for (const [name, value] of Object.entries({ tab: 'calendar', ...next })) {
      if (value === null) parameters.delete(name);
      else parameters.set(name, value);
    }
    const isStep = changes.at === null;
    setAddress(`tasks/${task.id}`, parameters, isStep ? {} : undefined);
  };
  const { by, date } = shown;
  const go = (many) => () => show({ date: step(by, date, many), at: null });
  const aside = html`<div class="row middle">
    ${units.map(
      (unit) => html`<button type="button" class="quiet small" aria-pressed=${unit === by}
        onClick=${() => show({ by: unit, at: null })}>${unit[0].toUpperCase() + unit.slice(1)}</button>`,
    )}
    <${Button} kind="small" onClick=${go(-1)} label="Previous ${by}">‹<//>
    <span class="month" aria-live="polite">${titles[by](date)}</span>
    <${Button} kind="small" onClick=${go(1)} label="Next ${by}">›<//>
    <${Button} kind="small" onClick=${() => show({ date: today, at: null })}>Today<//>
  </div>`;
  const same = { task, zone, today, date, version, pausing };
  return html`<${Section} title="Fires and runs" aside=${aside}>
    ${
      by === 'day'
        ? html`<${DayList} key=${`${date} ${zone}`} ...${same} at=${shown.at} choose=${(at) => show({ at })} />`
        : html`<${Parts} key=${by} ...${same} by=${by}
            open=${(part) => show({ at: null, ...(by === 'year' ? { by: 'month', date: `${part}-01` } : { by: 'day', date: part }) })} />`
    }
    <p class="hint">Days are in the time zone ${zone}. The past shows what was decided, the future what the present schedule gives.</p>
  <//>`;
}

/** The days of a month, or the months of a year. */
function Parts({ task, zone, today, date, version, pausing, by, open }) {
  const unit = by === 'year' ? 'month' : 'day';
  const parts = useUpdates(
    (signal) => readParts(task, zone, unit, date, signal),
    [date.slice(0, by === 'year' ? 4 : 7), zone, version],
    { every: today.startsWith(date.slice(0, by === 'year' ? 4 : 7)) ? BEAT : undefined, pausing },
  );
  const name = titles[by](date);
  return html`<${Loaded} of=${parts}>
    ${({
      parts: all,
      isCounted,
    }) => html`<div class="calendar by-${unit}" role="group" aria-label="Fires in ${name}">
        ${unit === 'day' && html`<${Weekdays} first=${all[0].date} />`}
        ${all.map(
          (part) => html`<${Cell} key=${part.date} ...${part} unit=${unit}
            isToday=${today.startsWith(part.date)} open=${open} />`,
        )}
      </div>
      <p class="legend soft">
        ${kinds.map(([, tone, text]) => html`<span class="dot ${tone}"></span>${text} `)}
        <span class="dot idle"></span>to come ${
          !isCounted && 'It fires too often to count fires that did not run. Choose a day.'
        }
      </p>`}
  <//>`;
}

function Weekdays({ first }) {
  const lead = (new Date(`${first}T00:00:00Z`).getUTCDay() + 6) % 7;
  return [
    ...weekdays.map((each) => html`<span class="weekday" aria-hidden="true">${each}</span>`),
    ...Array.from({ length: lead }, () => html`<span></span>`),
  ];
}

const short = (many) => (many < 1000 ? many : `${Math.round(many / 100) / 10}k`);

function Cell({ date, counts, ahead, isOpen, gaps, unit, isToday, open }) {
  const present = kinds.filter(([key]) => counts[key] > 0);
  const name =
    unit === 'day'
      ? dateWords(date, { day: 'numeric', month: 'long' })
      : dateWords(`${date}-01`, { month: 'long' });
  const words = [
    ...present.map(([key, , text]) => `${count(counts[key])} ${text}`),
    ...gaps.map((gap) => `part of ${count(gap.count)} fires that did not run: ${gap.reason}`),
    ...(ahead > 0 ? [`${count(ahead)} to come`] : []),
    ...(isOpen ? ['and more due'] : []),
  ].join(', ');
  const label =
    unit === 'day' ? Number(date.slice(8)) : dateWords(`${date}-01`, { month: 'short' });
  return html`<button type="button" class="day ${isToday ? 'today' : ''}" title=${words}
    onClick=${() => open(date)}>
    <span class="date" aria-hidden="true">${label}</span>
    <span class="hidden">${name}: ${words || 'no fires'}</span>
    <span class="counts" aria-hidden="true">
      ${present.map(([key, tone]) => html`<span class=${tone}>${short(counts[key])}</span>`)}
      ${gaps.length > 0 && html`<span class="wait">–</span>`}
      ${ahead > 0 && html`<span class="idle">${short(ahead)}</span>`}
      ${isOpen && html`<span class="idle">…</span>`}
    </span>
  </button>`;
}
