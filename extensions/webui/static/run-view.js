// One run: its steps over time, attempts, output, error, log and events. Live while it goes on.

import { call, may } from './client.js';
import { attempt, button, facts, h, json, part, put, state, table } from './dom.js';
import { gantt } from './charts.js';
import { follow } from './live.js';
import { moment, duration, tookOf, when } from './times.js';

const ended = new Set(['succeeded', 'failed', 'canceled', 'skipped']);

export async function runView(place, { id, signal }) {
  const events = h('div');
  const body = h('div');
  let run;
  let task = null;

  /** @param after position that what is read has to have passed */
  async function load(after) {
    run = await call('GET', `runs/${id}`, { query: { after }, signal });
    if (task === null && may('tasks:read'))
      task = await call('GET', `tasks/${run.task_id}`, { signal });
    show();
    if (may('audit:read')) await loadEvents();
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
    const open = events.querySelector('details[open]') !== null;
    // Somebody reads one: it stays.
    if (open) return;
    put(
      events,
      part(
        'Events',
        table('Events', ['No.', 'Type', 'At', 'Data'], rows),
        h(
          'p',
          {},
          h(
            'a',
            { href: `#/streams/run-${id}` },
            next_from === null ? 'Step through them' : 'There are more: step through them',
          ),
        ),
      ),
    );
  }

  function show() {
    const took = tookOf(run);
    put(
      body,
      h('h1', {}, 'Run of ', h('a', { href: `#/tasks/${run.task_id}` }, task?.title ?? 'a task')),
      h(
        'div.row.middle',
        {},
        state(run.state),
        run.cancel_requested && !ended.has(run.state) && h('span', {}, 'told to stop'),
        actions(),
      ),
      run.error !== null &&
        part('Error', h('pre', { tabindex: 0, role: 'region', 'aria-label': 'Error' }, run.error)),
      part('Steps', gantt('Attempts and steps over time', bars(run))),
      h(
        'div.columns',
        {},
        part(
          'Facts',
          facts(
            ['Begun by', run.trigger],
            ['Nominal time', when(run.scheduled_for)],
            ['Queued', when(run.queued_at)],
            ['Started', when(run.started_at)],
            ['Ended', when(run.finished_at)],
            ['Took', took === null ? '–' : duration(took)],
            ['Attempt', String(run.attempt)],
            ['Worker', run.lease_owner],
            run.skip_reason !== null && ['Skipped for', run.skip_reason],
            run.retry_of !== null && [
              'Retry of',
              h('a', { href: `#/runs/${run.retry_of}` }, run.retry_of),
            ],
            run.retried_by !== null && [
              'Retried by',
              h('a', { href: `#/runs/${run.retried_by}` }, run.retried_by),
            ],
          ),
        ),
        part(
          'Attempts',
          table(
            'Attempts',
            ['No.', 'Outcome', 'Took', 'Worker', 'Error'],
            run.attempts.map((each) => [
              String(each.attempt),
              state(each.outcome ?? 'running'),
              duration(tookOf(each)),
              each.worker,
              [each.step && `${each.step}: `, each.error],
            ]),
            'None has begun.',
          ),
        ),
      ),
      h(
        'div.columns',
        {},
        part('Output', run.output === null ? h('p.soft', {}, 'None.') : json(run.output, 'Output')),
        part(
          'Log',
          run.log.length === 0
            ? h('p.soft', {}, 'No lines.')
            : h(
                'ul.list',
                {},
                run.log.map(({ at, level, message, step, data }) =>
                  h(
                    'li',
                    {},
                    moment(at),
                    ` ${level} `,
                    h('code', {}, step),
                    ` ${message}`,
                    data !== undefined && json(data, 'Data'),
                  ),
                ),
              ),
        ),
      ),
    );
  }

  function actions() {
    if (!may('tasks:write')) return [];
    const retry = (text, from) =>
      button(text, async () => {
        let details;
        const went = await attempt(async () => {
          ({ details } = await call('POST', `runs/${id}/retry`, { query: { from } }));
        }, 'A retry is requested.');
        if (went) location.hash = `#/runs/${details.run_id}`;
      });
    const cancel = () =>
      attempt(async () => {
        await call('POST', `runs/${id}/cancel`);
        await load();
      }, 'The run is told to stop.');
    return [
      run.state === 'failed' && retry('Retry from the failed step', 'failed_step'),
      run.state === 'failed' && retry('Retry from the start', 'start'),
      !ended.has(run.state) && button('Cancel the run', cancel, '.danger'),
    ];
  }

  put(place, body, events);
  await load();
  if (ended.has(run.state)) return;
  const done = new AbortController();
  signal.addEventListener('abort', () => done.abort());
  let loading = Promise.resolve();
  const again = (position) => {
    loading = loading
      .then(() => load(position))
      .catch((error) => {
        if (!signal.aborted) throw error;
      });
  };
  void follow(`tasks/${run.task_id}/live`, {
    signal: done.signal,
    stateChanged() {},
    told(name, data) {
      if (name === 'live.started') again(data.position);
      if (data.run?.id !== id) return;
      again(data.position);
      if (name === 'run.ended') done.abort();
    },
  });
}

function bars({ attempts, steps }) {
  const until = (iso) => (iso === null ? Date.now() : Date.parse(iso));
  return [
    ...attempts.map(({ attempt: n, started_at, finished_at, outcome }) => ({
      label: `attempt ${n}`,
      from: Date.parse(started_at),
      to: until(finished_at),
      state: outcome ?? 'running',
    })),
    ...steps.map(({ step, started_at, finished_at, status }) => ({
      label: step,
      from: Date.parse(started_at),
      to: Date.parse(finished_at),
      state: status,
    })),
  ];
}
