// One run: its steps over time, attempts, output, error, log and events. Live until it ends.

import { html, useRef } from '../../preact.js';
import { call, command, may, mayChange } from '../../client.js';
import { useData } from '../../data.js';
import { LiveMark, useLive } from '../../live.js';
import { learnTitles, zoneOf } from '../../names.js';
import { notify } from '../../store.js';
import { duration, durationOf } from '../../times.js';
import { useTaskZone } from '../../zones.js';
import { AskButton } from '../../ui/dialog.js';
import { Button, Json, Lines, Nothing, State, Table } from '../../ui/elements.js';
import { Facts, Heading, Loaded, LoadedView, Section } from '../../ui/layout.js';
import { Instant, InstantAndDistance, RunLink, StreamLink, TaskLink } from '../../ui/names.js';
import { RunArtifacts } from './run-artifacts.js';
import { ChildRuns } from './child-runs.js';
import { RunGraph } from './run-graph.js';
import { RunSteps } from './run-steps.js';
import { RunWaits } from './run-waits.js';

const ended = new Set(['succeeded', 'failed', 'canceled', 'skipped']);
const isOver = ({ state }) => ended.has(state);
const MAX_EVENTS = 200;

export function RunView({ id }) {
  /** The task, for its owner and status: the run belongs to that owner. Null if the agent may not know. */
  const task = useRef(null);
  const run = useData(async (signal, after) => {
    const read = await call('GET', `runs/${id}`, { query: { after }, signal });
    const awaited = read.waits.flatMap(({ task_id: task }) => task ?? []);
    await learnTitles([read.task_id, ...awaited], signal);
    // Once while it runs; and again when it has failed, as the task may be canceled by now.
    if (read.state === 'failed' || (task.current === null && !isOver(read))) {
      task.current = await readTask(read.task_id, signal);
    }
    return { run: read, task: task.current };
  }, []);
  const isLive = run.data !== undefined && !isOver(run.data.run);
  const live = useLive(isLive ? `tasks/${run.data.run.task_id}/live` : null, (name, data) => {
    if (name === 'live.started' || data.run?.id === id) run.refresh(data.position);
  });
  return html`<${LoadedView} of=${run}>
      ${(each) => html`<${Run} ...${each} live=${live} done=${run.reload} />
        ${may('audit:read') && html`<${Events} run=${each.run} />`}`}
    <//>`;
}

/** The run is shown even if its task can't be read. */
async function readTask(id, signal) {
  if (!may('tasks:write') || !may('tasks:read')) return null;
  try {
    return await call('GET', `tasks/${id}`, { signal });
  } catch (error) {
    if (signal.aborted) throw error;
    return null;
  }
}

function Run({ run, task, live, done }) {
  useTaskZone(zoneOf(run.task_id));
  const canRetry = run.state === 'failed' && task?.status !== 'canceled';
  const beside = html`<${State} of=${run.state} />
    ${run.cancel_requested && !isOver(run) && html`<span class="soft">stop requested</span>`}
    ${!isOver(run) && html`<${LiveMark} state=${live} />`}
    ${run.state === 'failed' && !canRetry && html`<span class="soft">no retry: the task is canceled</span>`}`;
  return html`<${Heading} title=${html`Run of <${TaskLink} id=${run.task_id} />`} beside=${beside}>
      ${mayChange(task ?? run) && html`<${RunActions} run=${run} canRetry=${canRetry} done=${done} />`}
    <//>
    ${run.error !== null && html`<${ErrorSection} error=${run.error} />`}
    <${RunWaits} run=${run} done=${done} />
    <${RunGraph} run=${run} />
    <${RunSteps} run=${run} />
    <${RunArtifacts} run=${run} />
    <${ChildRuns} run=${run} />
    <div class="columns">
      <${RunFacts} run=${run} />
      <${Section} title="Output">
        ${run.output === null ? 'None.' : html`<${Json} label="Output" value=${run.output} />`}
      <//>
      ${
        Object.keys(run.params ?? {}).length > 0 &&
        html`<${Section} title="Params"><${Json} label="Params" value=${run.params} /><//>`
      }
      ${run.event && html`<${EventSection} event=${run.event} />`}
    </div>
    ${run.attempts.length > 1 && html`<${Attempts} attempts=${run.attempts} />`}
    <${Log} log=${run.log} />`;
}

const EventSection = ({ event }) =>
  html`<${Section} title="Event" aside=${html`<code>${event.topic}</code>`}>
    <${Json} label="Event" value=${event.payload} />
  <//>`;

const ErrorSection = ({ error }) =>
  html`<${Section} title="Error" kind="error"><${Lines} label="Error">${error}<//><//>`;

function RunActions({ run, canRetry, done }) {
  const retry = (from) => async () => {
    const { details } = await command(`runs/${run.id}/retry`, { query: { from } });
    notify('A retry was requested.');
    location.hash = `#/runs/${details.run_id}`;
  };
  if (canRetry) {
    return html`<${Button} kind="main-action" onClick=${retry('failed_step')}>Retry from the failed step<//>
      <${Button} onClick=${retry('start')}>Retry from the start<//>`;
  }
  const dialog = {
    title: 'Cancel this run?',
    text: 'It is asked to stop, and given up after ten seconds.',
    path: `runs/${run.id}/cancel`,
    done: 'The run was asked to stop.',
  };
  return (
    !isOver(run) &&
    html`<${AskButton} text="Cancel the run" kind="danger" dialog=${dialog} done=${done} />`
  );
}

function RunFacts({ run }) {
  const { started_at: started, run_at: planned } = run;
  const waited = Math.max(0, Date.parse(started) - Date.parse(planned));
  const time = (at) => html`<${InstantAndDistance} at=${at} />`;
  const facts = [
    ['Trigger', run.trigger],
    ['Nominal time', time(run.scheduled_for)],
    ['Queued', time(run.queued_at)],
    !isOver(run) && started === null && ['To start', time(planned)],
    ['Started', time(started)],
    ['Ended', time(run.finished_at)],
    ['Took', durationOf(run)],
    started !== null && ['Waited', duration(waited)],
    ['Attempt', run.attempt],
    ['Worker', run.lease_owner],
    run.skip_reason !== null && ['Skip reason', run.skip_reason],
    run.retry_of !== null && ['Retry of', html`<${RunLink} id=${run.retry_of} />`],
    run.retried_by !== null && ['Retried by', html`<${RunLink} id=${run.retried_by} />`],
    run.parent_run_id !== null && ['Parent run', html`<${RunLink} id=${run.parent_run_id} />`],
    run.depth > 0 && ['Depth', run.depth],
    ['Task revision', run.task_revision],
    ['ID', html`<code>${run.id}</code>`],
  ];
  return html`<${Section} title="Facts"><${Facts} of=${facts} /><//>`;
}

const attemptColumns = [
  ['No.', 'attempt', 'num'],
  ['Result', ({ outcome }) => html`<${State} of=${outcome ?? 'running'} />`],
  ['Took', durationOf, 'num'],
  ['Worker', 'worker'],
  ['Error', ({ step, error }) => html`${step && html`<code>${step}</code>`} ${error}`, 'grow'],
];
const Attempts = ({ attempts }) =>
  html`<${Section} title="Attempts">
    <${Table} caption="Attempts" columns=${attemptColumns} items=${attempts}
      rowKey="attempt" />
  <//>`;

function Log({ log }) {
  const lines = log.map(
    ({ at, level, message, step, data }) => html`<li>
      <${Instant} at=${at} /><span class="level ${level}">${level}</span><code>${step}</code>
      <span class="message">${message}</span>
      ${data !== undefined && html`<${Json} label="Data" value=${data} />`}
    </li>`,
  );
  return html`<${Section} title="Log">
    <div role="log" aria-label="Log">
      ${log.length === 0 ? html`<${Nothing} text="No lines." />` : html`<ul class="list log">${lines}</ul>`}
    </div>
  <//>`;
}

function Events({ run }) {
  const stream = `run-${run.id}`;
  const events = useData(
    (signal) => call('GET', `streams/${stream}`, { query: { limit: MAX_EVENTS }, signal }),
    [run],
  );
  const isMore = (events.data?.next_from ?? null) !== null;
  const text = isMore ? 'There are more. Step through them' : 'Step through them';
  return html`<${Section} title="Events" aside=${html`<${StreamLink} stream=${stream}>${text}<//>`}>
    <${Loaded} of=${events}>
      ${({ items }) => html`<${Table} caption="Events" columns=${eventColumns} items=${items}
        rowKey="revision" />`}
    <//>
  <//>`;
}

const eventColumns = [
  ['No.', 'revision', 'num'],
  ['Type', 'type'],
  ['At', ({ created_at: at }) => html`<${Instant} at=${at} />`],
  [
    'Data',
    ({ revision, data }) =>
      html`<details>
        <summary>data</summary><${Json} label="Data of event ${revision}" value=${data} />
      </details>`,
    'grow',
  ],
];
