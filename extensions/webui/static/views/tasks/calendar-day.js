// A day of a task: each decided fire, each gap, each other run, and what is to come. A click explains it.

import { html, useState } from '../../preact.js';
import { attempt } from '../../store.js';
import { useData } from '../../data.js';
import { count, counted, durationOf } from '../../times.js';
import { wallTime } from '../../zones.js';
import { Button, State, Table } from '../../ui/elements.js';
import { Loaded } from '../../ui/layout.js';
import { Instant, RunLink } from '../../ui/names.js';
import { ExplanationAt } from './explainer.js';
import { readDay, readDecided } from './calendar-data.js';
import { dateWords } from './calendar-dates.js';

/** Between two reads of today. Milliseconds. */
const BEAT = 10_000;
/** Fires to come that are listed. */
const MAX_AHEAD = 5;

/** `at` says which fire is explained, null for none; `choose(at)` explains another. */
export function DayList({ task, zone, today, date, version, at, choose }) {
  const every = date === today ? BEAT : undefined;
  const day = useData((signal) => readDay(task, zone, date, signal), [version], { every });
  return html`<div class="columns">
    <div>
      <${Loaded} of=${day}>
        ${(each) => html`<${Decided} ...${each} task=${task} zone=${zone} date=${date} at=${at} choose=${choose} />`}
      <//>
    </div>
    <div aria-live="polite" id="explanation">
      ${
        at === null
          ? html`<p class="soft">Choose a fire or a gap to see why it ran or did not.</p>`
          : html`<${ExplanationAt} key=${at} id=${task.id} at=${at} />`
      }
    </div>
  </div>`;
}

function Decided({ task, zone, date, at, choose, items, ahead, isAll, next, from, to }) {
  const [later, setLater] = useState({ items: [], next });
  const name = dateWords(date, { weekday: 'long', day: 'numeric', month: 'long' });
  const coming = ahead
    .slice(0, MAX_AHEAD)
    .reverse()
    .map(({ at: nominal, note }) => ({ id: `ahead ${nominal}`, at: nominal, note, isAhead: true }));
  const decided = [...items, ...later.items].map((item) => ({
    ...item,
    id: item.fire === undefined ? item.run.id : `fire ${item.fire.revision}`,
  }));
  const more = async () => {
    const page = await readDecided(task, from, to, later.next);
    const found = page.items.map((fire) => ({ at: fire.to, fire, run: fire.run }));
    setLater({ items: [...later.items, ...found], next: page.next });
  };
  const columns = [
    [
      'Time',
      (item) => html`<${TimeButton} ...${item} zone=${zone} chosen=${at} choose=${choose} />`,
    ],
    ['Result', (item) => html`<${State} of=${stateOf(item)} />`],
    ['Took', ({ run }) => run && durationOf(run), 'num'],
    ['Details', (item) => html`<${Details} ...${item} />`, 'grow'],
  ];
  return html`<h3>${name}</h3>
    ${task.status === 'paused' && html`<${HeldBack} task=${task} choose=${choose} />`}
    <div class="day-list">
      <${Table} caption="Fires of ${name}" columns=${columns} items=${[...coming, ...decided]}
        empty="Nothing was decided on this day, and nothing is to come." />
    </div>
    ${
      ahead.length > MAX_AHEAD &&
      html`<p class="hint">${count(ahead.length)} ${isAll ? 'to come in all' : 'and more to come'}</p>`
    }
    ${later.next !== null && html`<${Button} kind="small" onClick=${() => attempt(more)}>Earlier ones<//>`}`;
}

/** Fires since the pause are not decided before the task is resumed. */
function HeldBack({ task: { paused, next_run_at: _next }, choose }) {
  if (!paused) return null;
  return html`<p class="hint">
    Fires since <${Instant} at=${paused.at} /> are held back by a pause and undecided.
    <${Button} kind="small" onClick=${() => choose(new Date().toISOString())}>Why?<//>
  </p>`;
}

const clockIn = (zone, instant) => wallTime(new Date(instant), zone).slice(11);

function TimeButton({ at, fire, zone, chosen, choose }) {
  const isSpan = fire !== undefined && fire.from !== fire.to;
  const text = isSpan
    ? `${clockIn(zone, fire.from)} – ${clockIn(zone, fire.to)}`
    : clockIn(zone, at);
  // The first of a gap: the decision is about all of them.
  const asked = fire?.from ?? at;
  return html`<button type="button" class="quiet small" aria-pressed=${chosen === asked} title=${asked}
    onClick=${() => choose(asked)}>${text}</button>`;
}

function stateOf({ isAhead, fire, run }) {
  if (isAhead) return 'to_come';
  if (run) return run.state;
  return fire.reason === 'fired' ? 'fired' : fire.reason;
}

function Details({ isAhead, note, fire, run }) {
  if (isAhead) return note;
  if (run) {
    const trigger =
      run.trigger === undefined || run.trigger === 'schedule' ? '' : ` (${run.trigger})`;
    const why = run.error?.split('\n')[0] ?? run.skip_reason;
    return html`<${RunLink} id=${run.id} prefix="run " />${trigger} ${why}`;
  }
  if (fire.reason === 'fired') return 'Its run was removed.';
  return fire.count === 1 ? 'did not run' : `${counted(fire.count, 'fire')} did not run`;
}
