// One task: its fires past and to come, how long its runs took, its history, and why it did or did not fire.

import { call, may } from './client.js';
import { button, facts, h, json, labelled, part, put, state, table } from './dom.js';
import { runTimes } from './charts.js';
import { runsTable } from './runs-view.js';
import { taskActions } from './task-actions.js';
import { scheduleText } from './tasks-view.js';
import { ago, duration, moment, tookOf, when } from './times.js';

/** Fires shown before now and after. */
const BEFORE = 12;
const AFTER = 8;

export async function taskView(place, { id, signal }) {
  const ask = (path, query = {}) => call('GET', path, { query, signal });
  const head = h('div');
  const fires = h('div');
  const runs = h('div');
  const history = h('div');

  async function load() {
    const task = await ask(`tasks/${id}`);
    showHead(task);
    const listed = may('runs:read') ? (await ask('runs', { task_id: id, limit: 60 })).items : [];
    if (may('runs:read')) showRuns(listed);
    await Promise.all([
      task.schedule_kind === 'event' ? null : showFires(task, listed),
      may('audit:read') ? showHistory() : null,
    ]);
  }

  function showHead(task) {
    put(
      head,
      h('h1', {}, task.title),
      h(
        'div.row.middle',
        {},
        state(task.status),
        taskActions(task, load),
        may('tasks:write') &&
          task.status !== 'canceled' &&
          h('a.button', { href: `#/tasks/${id}/edit` }, 'Change'),
      ),
      task.warnings.map((warning) => h('p.fault', {}, warning)),
      h(
        'div.columns',
        {},
        part(
          'Facts',
          facts(
            ['Description', task.description],
            ['Schedule', h('code', {}, scheduleText(task))],
            ['Next fire', task.exhausted ? 'none: the schedule has ended' : when(task.next_run_at)],
            ['Last run', when(task.last_run_at)],
            ['Priority', String(task.priority)],
            ['Retries', `${task.max_retries}, ${task.backoff_strategy}`],
            ['Overlap', task.overlap_policy],
            task.tags.length > 0 && ['Tags', task.tags.join(', ')],
            ['Changed', when(task.updated_at)],
            ['Id', h('code', {}, id)],
          ),
        ),
        part('Pipeline', json(task.payload, 'Pipeline')),
      ),
    );
  }

  function showRuns(listed) {
    const over = listed
      .filter(({ started_at, finished_at }) => started_at && finished_at)
      .reverse();
    put(
      runs,
      part(
        'Run times',
        runTimes(over.map((run) => ({ took: tookOf(run), state: run.state, at: run.started_at }))),
      ),
      part(
        'Latest runs',
        runsTable(listed.slice(0, 10), 'It has not run yet.'),
        h('p', {}, h('a', { href: `#/runs?task_id=${id}` }, 'All its runs')),
      ),
    );
  }

  async function showFires(task, listed) {
    const preview = (body) =>
      call('POST', 'schedules/preview', { body: { task_id: id, ...body }, signal });
    const coming = (await preview({ count: AFTER })).fires;
    const past = await pastFires(task, preview, coming);
    const byTime = new Map(listed.map((run) => [run.scheduled_for, run]));
    const rows = await Promise.all(
      past.map(async ({ at, local }) => {
        const run = byTime.get(at);
        if (run !== undefined) {
          const took = tookOf(run);
          const link = h(
            'a',
            { href: `#/runs/${run.id}` },
            took === null ? 'run' : `run, ${duration(took)}`,
          );
          return [h('time', { datetime: at }, local), state(run.state), link];
        }
        const { reason, message } = await ask(`tasks/${id}/explain`, { at });
        return [h('time', { datetime: at }, local), state(reason ?? 'open'), message];
      }),
    );
    const ahead = task.status === 'active' ? coming : [];
    put(
      fires,
      h(
        'div.columns',
        {},
        part(
          'Fires that were due',
          table('Fires that were due', ['Time', 'Came to', 'How'], rows.reverse(), 'None yet.'),
        ),
        part(
          'Fires to come',
          ahead.length === 0
            ? h('p.soft', {}, task.status === 'paused' ? 'None while it is paused.' : 'None.')
            : h(
                'ol.list',
                {},
                ahead.map(({ at, local, note }) =>
                  h(
                    'li',
                    {},
                    h('time', { datetime: at }, local),
                    h('span.soft', {}, ` ${ago(at)}`),
                    note && h('p.hint', {}, note),
                  ),
                ),
              ),
        ),
      ),
    );
  }

  async function showHistory(cursor, before = []) {
    const { items, next_cursor } = await ask(`tasks/${id}/history`, { limit: 50, cursor });
    const all = [...before, ...items];
    put(
      history,
      part(
        'History',
        table('History', ['No.', 'What', 'When', 'Why', 'Changes'], all.map(historyRow)),
        next_cursor !== null && button('Later ones', () => showHistory(next_cursor, all)),
        h('p', {}, h('a', { href: `#/streams/task-${id}` }, 'Step through its events')),
      ),
    );
  }

  put(place, head, fires, explainer(id, signal), runs, history);
  await load();
}

/** The schedule's fires before now: the rhythm to come says how far to look back. */
async function pastFires({ created_at, starts_at }, preview, coming) {
  const now = Date.now();
  const begun = Math.max(Date.parse(created_at), starts_at === null ? 0 : Date.parse(starts_at));
  const [one, two] = coming.map(({ at }) => Date.parse(at));
  const last = coming.length > 1 ? Date.parse(coming.at(-1).at) : undefined;
  const gap = two === undefined ? now - begun : (last - one) / (coming.length - 1);
  const from = Math.min(now, Math.max(begun, now - gap * BEFORE));
  const { fires } = await preview({ from: new Date(from).toISOString(), count: 4 * BEFORE });
  return fires.filter(({ at }) => Date.parse(at) <= now).slice(-BEFORE);
}

const historyRow = ({ revision, type, at, reason, changes }) => [
  String(revision),
  type,
  moment(at),
  reason ?? '',
  changes.length === 0
    ? ''
    : h(
        'details',
        {},
        h('summary', {}, `${changes.length} changed`),
        h('ul.list', {}, changes.map(changeLine)),
      ),
];

/** `title: "a" → "b"` */
export const changeLine = ({ path, before, after }) =>
  h(
    'li',
    {},
    h('code', {}, path),
    ': ',
    JSON.stringify(before),
    ' → ',
    h('strong', {}, JSON.stringify(after)),
  );

/** Asks about any moment. */
function explainer(id, signal) {
  const local = new Date(Date.now() - new Date().getTimezoneOffset() * 60_000);
  const at = h('input', {
    type: 'datetime-local',
    step: 1,
    value: local.toISOString().slice(0, 19),
  });
  const answer = h('div', { 'aria-live': 'polite' });
  const submit = async (event) => {
    event.preventDefault();
    try {
      const query = { at: new Date(at.value).toISOString() };
      const told = await call('GET', `tasks/${id}/explain`, { query, signal });
      put(
        answer,
        h('p', {}, state(told.reason ?? 'open'), ' ', told.message),
        facts(
          told.run_id !== null && ['Run', h('a', { href: `#/runs/${told.run_id}` }, told.run_id)],
          ['Fire before', when(told.previous_fire)],
          ['Fire after', when(told.next_fire)],
        ),
      );
    } catch (error) {
      if (signal.aborted) return;
      put(answer, h('p.fault', { role: 'alert' }, error.message));
    }
  };
  return part(
    'Why did it, or did it not?',
    h(
      'form.row',
      { onsubmit: submit },
      labelled('At (your time)', at),
      h('button', { type: 'submit' }, 'Explain'),
    ),
    answer,
  );
}
