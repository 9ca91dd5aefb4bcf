// One task: its fires past and to come, how long its runs took, its history, and why it did or did not fire.

import { call, may, mayChange } from './client.js';
import { fireCalendar } from './fire-calendar.js';
import {
  button,
  facts,
  failure,
  h,
  heading,
  json,
  labelled,
  num,
  part,
  partWith,
  put,
  state,
  table,
  tile,
  wide,
} from './dom.js';
import { runTimes } from './charts.js';
import { backfillsPart } from './backfills.js';
import { changeLine } from './changes.js';
import { follow, liveMark } from './live.js';
import { actor, learnTitle, link } from './names.js';
import { turns } from './paging.js';
import { runsTable } from './runs-table.js';
import { backfillButton, taskActions } from './task-actions.js';
import { scheduleOf } from './tasks-view.js';
import { count, duration, localField, moment, moments, percent, tookOf, when } from './times.js';

/** Between two looks at what no run tells of. Milliseconds. */
const BEAT = 5000;

export async function taskView(place, { id, signal }) {
  const ask = (path, query = {}) => call('GET', path, { query, signal });
  const head = h('div');
  const figures = h('div.tiles');
  const fires = h('div');
  const runs = h('div');
  const backfills = h('div');
  const history = h('div');
  const about = h('div');
  const pipeline = h('div');
  const live = liveMark();
  let task;

  async function load() {
    task = await ask(`tasks/${id}`);
    learnTitle(task);
    showHead();
    put(pipeline, part('Pipeline', json(task.payload, 'Pipeline')));
    await Promise.all([
      loadRuns(),
      may('runs:read') ? loadFigures() : null,
      task.schedule_kind === 'event' ? null : fireCalendar(fires, task, signal),
      backfillsPart(backfills, task, signal),
      may('audit:read') ? showHistory() : null,
    ]);
  }

  /** A part that can't be had does not take the others with it. */
  const shown = (element, work) => async () => {
    try {
      await work();
    } catch (error) {
      if (!signal.aborted) put(element, failure(error, shown(element, work)));
    }
  };
  const loadRuns = shown(runs, async () => {
    if (may('runs:read')) showRuns((await ask('runs', { task_id: id, limit: 60 })).items);
  });
  const loadFigures = shown(figures, async () => {
    const stats = await ask(`task/${id}/stats`, { days: 30 });
    const seconds = (value) => (value === null ? '–' : duration(value * 1000));
    put(
      figures,
      tile('Runs in 30 days', count(stats.total_runs)),
      tile('Succeeded', percent(stats.success_rate)),
      tile(
        'Failed',
        count(stats.failed_runs),
        stats.last_failure && ['last ', when(stats.last_failure)],
      ),
      tile('Half take at most', seconds(stats.p50_execution_time_seconds)),
      tile('95 % take at most', seconds(stats.p95_execution_time_seconds)),
    );
  });

  /** What it is by now: it fires, and others change it. */
  const lookAgain = shown(about, async () => {
    const { revision } = task;
    const now = await ask(`tasks/${id}`);
    const same = JSON.stringify(now) === JSON.stringify(task);
    if (same && about.querySelector('.failure') === null) return;
    task = now;
    if (now.revision === revision) showHead();
    else await load();
  });

  function showHead() {
    put(
      head,
      heading(
        task.title,
        [state(task.status), live.mark],
        taskActions(task, load),
        backfillButton(task, load),
        mayChange(task) &&
          task.status !== 'canceled' &&
          h('a.button', { href: `#/tasks/${id}/edit` }, 'Change'),
      ),
      task.warnings.map((warning) => h('p.fault', {}, warning)),
    );
    put(
      about,
      part(
        'Facts',
        facts(
          task.description !== task.title && ['Description', task.description],
          ['Schedule', scheduleOf(task)],
          [
            'Next fire',
            task.exhausted ? 'none: the schedule has ended' : moments(task.next_run_at),
          ],
          ['Last run', moments(task.last_run_at)],
          task.tags.length > 0 && [
            'Tags',
            task.tags.map((tag) =>
              h('a.tag', { href: `#/tasks?tag=${encodeURIComponent(tag)}` }, tag),
            ),
          ],
          ['Priority', String(task.priority)],
          ['Retries', `${task.max_retries}, ${task.backoff_strategy.replaceAll('_', ' ')}`],
          task.timeout_seconds !== null && ['Time limit', duration(task.timeout_seconds * 1000)],
          ['Overlap', task.overlap_policy.replaceAll('_', ' ')],
          [
            'Missed fires',
            `${task.misfire_policy}, grace ${duration(task.misfire_grace_seconds * 1000)}`,
          ],
          task.concurrency_key !== null && [
            'Concurrency key',
            `${task.concurrency_key} (at most ${task.concurrency_limit} at once)`,
          ],
          task.dedupe_key !== null && ['Dedupe key', task.dedupe_key],
          task.pause_after_failures !== null && [
            'Pauses after',
            `${task.pause_after_failures} failures`,
          ],
          task.max_runs !== null && ['Most fires', count(task.max_runs)],
          ['Owner', actor(task.created_by)],
          ['Changed', moments(task.updated_at)],
          ['Id', h('code', {}, id)],
        ),
      ),
    );
  }

  function showRuns(listed) {
    const over = listed
      .filter(({ started_at, finished_at }) => started_at && finished_at)
      .reverse()
      .map((run) => ({ took: tookOf(run), state: run.state, at: run.started_at, id: run.id }));
    put(
      runs,
      part('Run times', runTimes(over)),
      partWith(
        'Latest runs',
        h('a', { href: `#/runs?task_id=${id}` }, 'All its runs'),
        runsTable(listed.slice(0, 10), { task: false, empty: 'It has not run yet.' }),
      ),
    );
  }

  const showHistory = shown(history, () => readHistory());
  async function readHistory(cursor, before = []) {
    const { items, next_cursor } = await ask(`tasks/${id}/history`, { limit: 50, cursor });
    const all = [...before, ...items];
    put(
      history,
      partWith(
        'History',
        h('a', { href: `#/streams/task-${id}` }, 'Step through its events'),
        table(
          'History',
          [num('No.'), 'What', 'When', 'Who', wide('Why'), wide('Changes')],
          all.map(historyRow),
        ),
        next_cursor !== null && button('Later ones', () => readHistory(next_cursor, all), '.small'),
      ),
    );
  }

  put(
    place,
    head,
    figures,
    fires,
    explainer(id, signal),
    h('div.columns', {}, runs, h('div', {}, about, pipeline)),
    backfills,
    history,
  );
  await load();
  if (signal.aborted) return;
  const beat = setInterval(() => {
    if (!document.hidden) void lookAgain();
  }, BEAT);
  let soon = null;
  signal.addEventListener('abort', () => {
    clearInterval(beat);
    clearTimeout(soon);
  });
  if (!may('runs:read')) return;
  void follow(`tasks/${id}/live`, {
    signal,
    stateChanged: live.say,
    told(name) {
      if (name === 'live.ended' || name === 'live.started') return;
      // Not one after the other: a task may run each second.
      soon ??= setTimeout(() => {
        soon = null;
        void Promise.all([loadRuns(), loadFigures(), lookAgain()]);
      }, 1000);
    },
  });
}

const historyRow = ({ revision, type, at, actor: by, actor_name: name, reason, changes }) => [
  String(revision),
  type,
  moment(at),
  actor(by, name),
  reason ?? '',
  changes.length === 0
    ? ''
    : changes.length <= 2
      ? h('ul.list', {}, changes.map(changeLine))
      : h(
          'details',
          {},
          h('summary', {}, `${changes.length} fields`),
          h('ul.list', {}, changes.map(changeLine)),
        ),
];

/** Asks about any moment. */
function explainer(id, signal) {
  const at = h('input', {
    type: 'datetime-local',
    step: 1,
    value: localField(new Date()),
  });
  const answer = h('div', { 'aria-live': 'polite' });
  const nextTurn = turns(signal);
  const submit = async (event) => {
    event.preventDefault();
    const isLatest = nextTurn();
    try {
      if (at.value === '') throw new Error('Say when.');
      const query = { at: new Date(at.value).toISOString() };
      const told = await call('GET', `tasks/${id}/explain`, { query, signal });
      if (!isLatest()) return;
      put(
        answer,
        h('p', {}, state(told.reason ?? 'open'), ' ', told.message),
        facts(
          told.run_id !== null && ['Run', link(`runs/${told.run_id}`, told.run_id)],
          ['Fire before', moments(told.previous_fire)],
          ['Fire after', moments(told.next_fire)],
          told.evidence.length > 0 && [
            'Evidence',
            told.evidence.map(({ stream, revision, type }) => [
              link(`streams/${encodeURIComponent(stream)}?at=${revision}`, type),
              ' ',
            ]),
          ],
        ),
      );
    } catch (error) {
      if (isLatest()) put(answer, failure(error));
    }
  };
  return part(
    'Why did it fire, or not?',
    h(
      'form.row',
      { onsubmit: submit },
      labelled('At (your time)', at),
      h('button', { type: 'submit' }, 'Explain'),
    ),
    answer,
  );
}
