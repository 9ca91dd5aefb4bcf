// One run: its steps over time, attempts, output, error, log and events. Live while it goes on.

import { call, may, mayChange, order } from './client.js';
import { ask, reasonField } from './dialog.js';
import {
  attempt,
  button,
  facts,
  failure,
  h,
  heading,
  json,
  lines,
  nothing,
  num,
  part,
  partWith,
  put,
  state,
  table,
  wide,
} from './dom.js';
import { gantt } from './charts.js';
import { follow, liveMark } from './live.js';
import { learnTitles, runLink, taskLink } from './names.js';
import { clockText, duration, moment, moments, tookOf } from './times.js';

const ended = new Set(['succeeded', 'failed', 'canceled', 'skipped']);
const BEAT = 1000;

export async function runView(place, { id, signal }) {
  const events = h('div');
  const body = h('div');
  const steps = h('div');
  const live = liveMark();
  let run;
  /** Its task's owner and status as they are now; null where nobody may know. The run belongs to that owner. */
  let task = null;

  /** @param after position that what is read has to have passed */
  async function load(after) {
    run = await call('GET', `runs/${id}`, { query: { after }, signal });
    await learnTitles([run.task_id], signal);
    await learnTask();
    show();
    if (may('audit:read')) await loadEvents();
  }

  async function learnTask() {
    const hasActions = run.state === 'failed' || !ended.has(run.state);
    if (!hasActions || !may('tasks:write') || !may('tasks:read')) return;
    // Once while it goes on, however often the run is read; and where it has failed, as the task may be canceled by now.
    if (task !== null && run.state !== 'failed') return;
    try {
      task = await call('GET', `tasks/${run.task_id}`, { signal });
    } catch (error) {
      // The run is shown all the same; whoever asks for something is told.
      if (signal.aborted) throw error;
    }
  }

  async function loadEvents() {
    const page = { query: { limit: 200 }, signal };
    const { items, next_from } = await call('GET', `streams/run-${id}`, page);
    const rows = items.map(({ revision, type, created_at, data }) => [
      String(revision),
      type,
      moment(created_at),
      h('details', {}, h('summary', {}, 'data'), json(data, `Data of event ${revision}`)),
    ]);
    // Somebody reads one: it stays.
    if (events.querySelector('details[open]') !== null) return;
    put(
      events,
      partWith(
        'Events',
        h(
          'a',
          { href: `#/streams/run-${id}` },
          next_from === null ? 'Step through them' : 'There are more: step through them',
        ),
        table('Events', [num('No.'), 'Type', 'At', wide('Data')], rows),
      ),
    );
  }

  function showSteps() {
    if (steps.querySelector('details[open]') !== null && !ended.has(run.state)) return;
    put(steps, part('Steps', gantt('Attempts and steps over time', bars(run))));
  }

  function show() {
    const took = tookOf(run);
    const spent = canRetry() || run.state !== 'failed' ? null : 'its task is canceled: no retry';
    showSteps();
    put(
      body,
      heading(
        ['Run of ', taskLink(run.task_id)],
        [
          state(run.state),
          run.cancel_requested && !ended.has(run.state) && h('span.soft', {}, 'told to stop'),
          !ended.has(run.state) && live.mark,
          spent !== null && h('span.soft', {}, spent),
        ],
        actions(),
      ),
      run.error !== null &&
        h('section.error', {}, h('div.head', {}, h('h2', {}, 'Error')), lines(run.error, 'Error')),
      steps,
      h(
        'div.columns',
        {},
        part(
          'Facts',
          facts(
            ['Begun by', run.trigger],
            ['Nominal time', moments(run.scheduled_for)],
            ['Queued', moments(run.queued_at)],
            !ended.has(run.state) && run.started_at === null && ['To start', moments(run.run_at)],
            ['Started', moments(run.started_at)],
            ['Ended', moments(run.finished_at)],
            ['Took', took === null ? '–' : duration(took)],
            run.started_at !== null && [
              'Waited',
              duration(Math.max(0, Date.parse(run.started_at) - Date.parse(run.run_at))),
            ],
            ['Attempt', String(run.attempt)],
            ['Worker', run.lease_owner],
            run.skip_reason !== null && ['Skipped for', run.skip_reason],
            run.retry_of !== null && ['Retry of', runLink(run.retry_of)],
            run.retried_by !== null && ['Retried by', runLink(run.retried_by)],
            ['Task as of revision', String(run.task_revision)],
            ['Id', h('code', {}, id)],
          ),
        ),
        h(
          'div',
          {},
          part('Output', run.output === null ? nothing('None.') : json(run.output, 'Output')),
        ),
      ),
      run.attempts.length > 1 && part('Attempts', attemptsTable(run.attempts)),
      part('Log', run.log.length === 0 ? nothing('No lines.') : logList(run.log)),
    );
  }

  const canRetry = () => run.state === 'failed' && task?.status !== 'canceled';

  function actions() {
    if (!mayChange(task ?? run)) return [];
    const retry = (text, from, kind) =>
      button(
        text,
        async () => {
          let details;
          const went = await attempt(async () => {
            ({ details } = await order(`runs/${id}/retry`, { query: { from } }));
          }, 'A retry is requested.');
          if (went) location.hash = `#/runs/${details.run_id}`;
        },
        kind,
      );
    const cancel = () =>
      ask({
        title: 'Cancel this run?',
        text: 'It is told to stop, and given up after ten seconds.',
        action: 'Cancel the run',
        kind: '.danger',
        fields: [reasonField],
        async act({ reason }) {
          await order(`runs/${id}/cancel`, { reason });
          await load();
        },
        done: 'The run is told to stop.',
      });
    return [
      canRetry() && retry('Retry from the failed step', 'failed_step', '.main-action'),
      canRetry() && retry('Retry from the start', 'start'),
      !ended.has(run.state) && button('Cancel the run', cancel, '.danger'),
    ];
  }

  put(place, body, events);
  await load();
  if (ended.has(run.state)) return;
  const done = new AbortController();
  signal.addEventListener('abort', () => done.abort());
  const beat = setInterval(() => {
    if (!document.hidden && run.started_at !== null) showSteps();
  }, BEAT);
  done.signal.addEventListener('abort', () => clearInterval(beat));
  // What comes while it is read is read once more, at its latest: a run of many steps tells of each.
  let reading = false;
  let wanted = null;
  async function again(position) {
    wanted = { position };
    if (reading) return;
    reading = true;
    while (wanted !== null && !signal.aborted) {
      const latest = wanted.position;
      wanted = null;
      try {
        await load(latest);
      } catch (error) {
        if (!signal.aborted)
          put(
            events,
            failure(error, () => again(latest)),
          );
      }
    }
    reading = false;
  }
  void follow(`tasks/${run.task_id}/live`, {
    signal: done.signal,
    stateChanged: live.say,
    told(name, data) {
      if (name === 'live.started') void again(data.position);
      if (data.run?.id !== id) return;
      void again(data.position);
      if (name === 'run.ended') done.abort();
    },
  });
}

const attemptsTable = (attempts) =>
  table(
    'Attempts',
    [num('No.'), 'Outcome', num('Took'), 'Worker', wide('Error')],
    attempts.map((each) => [
      String(each.attempt),
      state(each.outcome ?? 'running'),
      duration(tookOf(each)),
      each.worker,
      [each.step && h('code', {}, each.step), ' ', each.error],
    ]),
  );

const logList = (log) =>
  h(
    'ul.list.log',
    {},
    log.map(({ at, level, message, step, data }) =>
      h(
        'li',
        {},
        moment(at),
        h('span', { class: `level ${level}` }, level),
        h('code', {}, step),
        h('span.message', {}, message),
        data !== undefined && json(data, 'Data'),
      ),
    ),
  );

/** Attempts and, beneath each, the steps that ended in it. */
function bars({ attempts, steps }) {
  const until = (iso) => (iso === null ? Date.now() : Date.parse(iso));
  const stepBar = (each) => ({
    label: each.step,
    from: Date.parse(each.started_at),
    to: Date.parse(each.finished_at),
    state: each.status,
    level: 'step',
    more: h(
      'div',
      {},
      facts(
        ['Status', state(each.status)],
        ['From', clockText(each.started_at)],
        ['To', clockText(each.finished_at)],
        ['Attempt', String(each.attempt)],
      ),
      each.error === null
        ? json(each.result, `Result of ${each.step}`)
        : lines(each.error, `Error of ${each.step}`),
    ),
  });
  const of = (attempt) => steps.filter((each) => each.attempt === attempt).map(stepBar);
  const known = new Set(attempts.map((each) => each.attempt));
  return [
    // Results that were taken over from the run that this one retries.
    ...steps.filter((each) => !known.has(each.attempt)).map(stepBar),
    ...attempts.flatMap(({ attempt, started_at, finished_at, outcome }) => [
      {
        label: `attempt ${attempt}`,
        from: Date.parse(started_at),
        to: until(finished_at),
        state: outcome ?? 'running',
        level: 'attempt',
      },
      ...of(attempt),
    ]),
  ];
}
