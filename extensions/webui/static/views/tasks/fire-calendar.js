// A month of a task's fires in numbers, and each fire of a day, with why it did not run.

import { html, useState } from '../../preact.js';
import { useData } from '../../data.js';
import { clockText, count, durationOf } from '../../times.js';
import { Button, State, Table } from '../../ui/elements.js';
import { Loaded, Section } from '../../ui/layout.js';
import { RunLink } from '../../ui/names.js';
import { dateOf, explain, readDay, readMonth } from './fires.js';

/** Fires to come that are listed. */
const MAX_AHEAD = 5;
const format = (options) => new Intl.DateTimeFormat('en-GB', options);
const dayFormat = format({ weekday: 'long', day: 'numeric', month: 'long' });
const monthFormat = format({ month: 'long', year: 'numeric' });
const weekdays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
/** The possible results of a fire, with their tones and names. */
const kinds = [
  ['succeeded', 'good', 'succeeded'],
  ['failed', 'bad', 'failed'],
  ['unfinished', 'busy', 'unfinished'],
  ['missing', 'wait', 'did not run'],
  ['coming', 'idle', 'to come'],
];

export function FireCalendar({ task, version }) {
  const [today] = useState(() => dateOf(new Date()));
  const [month, setMonth] = useState(() => new Date(new Date().setDate(1)).setHours(0, 0, 0, 0));
  const [chosen, choose] = useState(today);
  const shown = new Date(month);
  const data = useData((signal) => readMonth(task, shown, signal), [month, version]);
  const go = (by) => () => {
    setMonth(new Date(shown.getFullYear(), shown.getMonth() + by, 1).getTime());
    choose(null);
  };
  const aside = html`<div class="row middle">
    <${Button} kind="small" onClick=${go(-1)} label="Previous month">‹<//>
    <span class="month" aria-live="polite">${monthFormat.format(shown)}</span>
    <${Button} kind="small" onClick=${go(1)} label="Next month">›<//>
  </div>`;
  return html`<${Section} title="Fires" aside=${aside}>
    <div class="columns">
      <div>
        <${Loaded} of=${data}>
          ${(each) => html`<${Month} ...${each} today=${today} chosen=${chosen} choose=${choose} />`}
        <//>
      </div>
      <div aria-live="polite">
        ${chosen && html`<${Day} key=${chosen} task=${task} date=${chosen} version=${version} />`}
      </div>
    </div>
  <//>`;
}

function Month({ month, of, isPartial, isOpen, today, chosen, choose }) {
  const name = monthFormat.format(month);
  const length = new Date(month.getFullYear(), month.getMonth() + 1, 0).getDate();
  const lead = (month.getDay() + 6) % 7;
  const dates = Array.from({ length }, (_, n) =>
    dateOf(new Date(month.getFullYear(), month.getMonth(), n + 1)),
  );
  return html`<div class="calendar" role="group" aria-label="Fires in ${name}">
      ${weekdays.map((each) => html`<span class="weekday" aria-hidden="true">${each}</span>`)}
      ${Array.from({ length: lead }, () => html`<span></span>`)}
      ${dates.map(
        (date) => html`<${DayCell} key=${date} name=${name} numbers=${of(date)} date=${date}
          isOpen=${isOpen(date)} isToday=${date === today} isChosen=${date === chosen} choose=${choose} />`,
      )}
    </div>
    <p class="legend soft">
      ${kinds.map(([, tone, text]) => html`<span class="dot ${tone}"></span>${text} `)}
      ${isPartial && 'It fires too often to count fires that did not run over a month. Choose a day.'}
    </p>`;
}

function DayCell({ name, date, numbers, isOpen, isToday, isChosen, choose }) {
  const present = kinds.filter(([key]) => numbers[key] > 0);
  const texts = present.map(([key, , text]) => `${count(numbers[key])} ${text}`);
  const words = [...texts, ...(isOpen ? ['more to come'] : [])].join(', ');
  const short = (many) => (many < 1000 ? many : `${Math.round(many / 100) / 10}k`);
  return html`<button type="button" class="day ${isToday ? 'today' : ''}" aria-pressed=${isChosen}
    title=${words} onClick=${() => choose(date)}>
    <span class="date">${Number(date.slice(8))}</span>
    <span class="hidden"> ${name}: ${words || 'no fires'}</span>
    <span class="counts" aria-hidden="true">
      ${present.map(([key, tone]) => html`<span class=${tone}>${short(numbers[key])}</span>`)}
      ${isOpen && html`<span class="idle">…</span>`}
    </span>
  </button>`;
}

function Day({ task, date, version }) {
  const fires = useData((signal) => readDay(task, date, signal), [version]);
  return fires.data === undefined && fires.error === null
    ? html`<p class="soft">Loading …</p>`
    : html`<${Loaded} of=${fires}>${(each) => html`<${DayFires} task=${task} ...${each} />`}<//>`;
}

const columns = [
  ['Time', ({ at }) => html`<time datetime=${at} title=${at}>${clockText(at)}</time>`],
  ['Result', (fire) => html`<${State} of=${stateOf(fire)} />`],
  ['Took', ({ run }) => run && durationOf(run), 'num'],
  ['Details', (fire) => html`<${FireDetails} ...${fire} />`, 'grow'],
];

function stateOf({ isAhead, run, explanation }) {
  if (isAhead) return 'to_come';
  if (run !== undefined) return run.state;
  return explanation === undefined ? 'did_not_run' : (explanation.reason ?? 'open');
}

function FireDetails({ task, at, isAhead, note, run, explanation }) {
  if (isAhead) return note;
  if (run !== undefined) {
    const trigger = run.trigger === 'schedule' ? '' : ` (${run.trigger})`;
    const why = run.error?.split('\n')[0] ?? run.skip_reason;
    return html`<${RunLink} id=${run.id} prefix="run " />${trigger} ${why}`;
  }
  if (explanation === undefined) return html`<${WhyButton} task=${task} at=${at} />`;
  const { message, run_id: id } = explanation;
  return html`${id !== null && html`<${RunLink} id=${id} prefix="run " /> `}${message}`;
}

function DayFires({ task, date, past, ahead, isAll, hasMore }) {
  const name = dayFormat.format(new Date(`${date}T12:00:00`));
  const coming = ahead.slice(0, MAX_AHEAD).reverse();
  const fires = [
    ...coming.map(({ at, note }) => ({ id: `ahead ${at}`, at, note, isAhead: true })),
    ...past.map((fire) => ({ id: fire.run?.id ?? fire.at, task, ...fire })),
  ];
  const more = isAll ? 'to come in all' : 'and more to come';
  const href = `#/runs?task_id=${task.id}&since=${date}T00:00&until=${date}T23:59:59`;
  const empty = task.status === 'paused' ? 'None while it is paused.' : 'No fires.';
  return html`<h3>${name}</h3>
    <div class="day-list">
      <${Table} caption="Fires of ${name}" columns=${columns} items=${fires} empty=${empty} />
    </div>
    ${ahead.length > MAX_AHEAD && html`<p class="hint">${count(ahead.length)} ${more}</p>`}
    ${hasMore && html`<p class="hint">and earlier ones: <a href=${href}>the runs of this day</a></p>`}`;
}

/** Explains a fire on demand: a day may have too many to explain all. */
function WhyButton({ task, at }) {
  const [answer, setAnswer] = useState(null);
  const act = async () => {
    const { reason, message } = await explain(task, at);
    setAnswer(`${reason ?? 'open'}: ${message}`);
  };
  return answer ?? html`<${Button} kind="small" onClick=${act}>Why?<//>`;
}
