// A day of a task: its decided fires, gaps, other runs and coming fires. A click explains an entry.

import { html } from '../../preact.js';
import { useRemembered } from '../../address.js';
import { count, counted, durationOf } from '../../times.js';
import { wallTime } from '../../zones.js';
import { Button, State, Table } from '../../ui/elements.js';
import { Loaded } from '../../ui/layout.js';
import { Instant, RunLink } from '../../ui/names.js';
import { useUpdates } from '../../ui/updates.js';
import { ExplanationAt } from './explainer.js';
import { readDay } from './calendar-data.js';
import { dateWords } from './calendar-dates.js';

/** The interval of reads for the current day, in milliseconds. */
const BEAT = 10_000;
/** The most coming fires that are listed. */
const MAX_AHEAD = 5;

/** `at`: the instant that is explained, or null; `choose(at)` explains another. */
export function DayList({ task, zone, today, date, version, pausing, at, choose }) {
  const every = date === today ? BEAT : undefined;
  const [pages, setPages] = useRemembered(`pages of ${date}`, 1);
  const read = (signal) => readDay(task, zone, date, pages, signal);
  const day = useUpdates(read, [version, pages], { every, pausing });
  return html`<div class="columns">
    <div>
      <${Loaded} of=${day}>
        ${(each) => html`<${Decided} ...${each} task=${task} zone=${zone} date=${date} at=${at} choose=${choose} readOn=${() => setPages(pages + 1)} />`}
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

function Decided({ task, zone, date, at, choose, readOn, items, ahead, isAll, isMore }) {
  const name = dateWords(date, { weekday: 'long', day: 'numeric', month: 'long' });
  const coming = ahead
    .slice(0, MAX_AHEAD)
    .reverse()
    .map(({ at: nominal, note }) => ({ id: `ahead ${nominal}`, at: nominal, note, isAhead: true }));
  const decided = items.map((item) => ({
    ...item,
    id: item.fire === undefined ? item.run.id : `fire ${item.fire.revision}`,
  }));
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
        empty="Nothing fired on this day, and nothing is due." />
    </div>
    ${
      ahead.length > MAX_AHEAD &&
      html`<p class="hint">${count(ahead.length)} ${isAll ? 'due in total' : 'and more due'}</p>`
    }
    ${isMore && html`<${Button} kind="small" onClick=${readOn}>Earlier ones<//>`}`;
}

/** Fires since the pause stay undecided until the task is resumed. */
function HeldBack({ task: { paused, next_run_at: _next }, choose }) {
  if (!paused) return null;
  return html`<p class="hint">
    Fires since <${Instant} at=${paused.at} /> are held back by a pause and undecided.
    <${Button} kind="small" onClick=${() => choose(new Date().toISOString())}>Why?<//>
  </p>`;
}

const clockIn = (zone, instant) => wallTime(new Date(instant), zone).slice(11);

function TimeButton({ at, fire, run, zone, chosen, choose }) {
  const isSpan = fire !== undefined && fire.from !== fire.to;
  const text = isSpan
    ? `${clockIn(zone, fire.from)} – ${clockIn(zone, fire.to)}`
    : clockIn(zone, at);
  // The first fire of a gap stands for all of them, as one decision covers the gap.
  const asked = fire?.from ?? run?.scheduled_for ?? at;
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
