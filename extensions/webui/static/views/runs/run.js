// One run in two panes: its steps over time or as a graph, and details of the chosen step. Updated live until it ends.

import { html, useRef } from '../../preact.js';
import { call, may, mayChange } from '../../client.js';
import { useLive } from '../../live.js';
import { learnTitles, zoneOf } from '../../names.js';
import { useTaskZone } from '../../zones.js';
import { State } from '../../ui/elements.js';
import { Heading, LoadedView, Section } from '../../ui/layout.js';
import { TaskLink } from '../../ui/names.js';
import { Updates, together, usePause, useUpdates } from '../../ui/updates.js';
import { ChildRuns } from './child-runs.js';
import { linkWithin, useRunAddress } from './run-address.js';
import { CopyButton, RetryButton, RunActions } from './run-actions.js';
import { RunArtifacts } from './run-artifacts.js';
import { Attempts, RunEvents, RunFacts } from './run-facts.js';
import { RunGraph } from './run-graph.js';
import { Obstacles, Reason, useExplanation } from './run-reason.js';
import { firstStep } from './run-rows.js';
import { RunWaits } from './run-waits.js';
import { Pane } from './step-pane.js';
import { Waterfall } from './waterfall.js';

const ended = new Set(['succeeded', 'failed', 'canceled', 'skipped']);
const isOver = ({ state }) => ended.has(state);

export function RunView({ id, query }) {
  /** The task, for its owner and status. Its owner also owns the run. null if the agent may not see the task. */
  const task = useRef(null);
  const pausing = usePause();
  const load = async (signal, after) => {
    const read = await call('GET', `runs/${id}`, { query: { after }, signal });
    const awaited = read.waits.flatMap(({ task_id: task }) => task ?? []);
    await learnTitles([read.task_id, ...awaited], signal);
    // Read once while the run is unfinished, and again when it has ended, as the task may be canceled by then.
    if (isOver(read) || task.current === null) task.current = await readTask(read.task_id, signal);
    return { run: read, task: task.current };
  };
  const run = useUpdates(load, [], { pausing });
  const isLive = run.data !== undefined && !isOver(run.data.run);
  const live = useLive(
    isLive && !pausing.isPaused ? `tasks/${run.data.run.task_id}/live` : null,
    (name, data) => {
      if (name === 'live.started' || data.run?.id === id) run.refresh(data.position);
    },
  );
  return html`<${LoadedView} of=${run}>
      ${(
        each,
      ) => html`<${Run} ...${each} query=${query} pausing=${pausing} live=${live} done=${run.reload} />
        ${may('audit:read') && html`<${RunEvents} run=${each.run} />`}`}
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

function Run({ run, task, query, pausing, live, done }) {
  useTaskZone(zoneOf(run.task_id));
  const address = useRunAddress(`runs/${run.id}`, query, {
    step: firstStep(run),
    view: 'waterfall',
    find: '',
    attempt: '',
  });
  const explanation = useExplanation(run, address.step, pausing);
  const canRetry = run.state === 'failed' && task?.status !== 'canceled';
  const isOwned = mayChange(task ?? run);
  const beside = html`<${State} of=${run.state} />
    ${run.cancel_requested && !isOver(run) && html`<span class="soft">stop requested</span>`}
    ${!isOver(run) && html`<${Updates} of=${together(pausing, [], live)} />`}
    ${run.state === 'failed' && !canRetry && html`<span class="soft">no retry: the task is canceled</span>`}`;
  const slow = (explanation.data?.step_times ?? []).filter((each) => each.slow);
  return html`<${Heading} title=${html`Run of <${TaskLink} id=${run.task_id} />`} beside=${beside}>
      ${isOwned && html`<${RunActions} run=${run} task=${task} canRetry=${canRetry} isOver=${isOver(run)} done=${done} />`}
      <${CopyButton} run=${run} task=${task} />
    <//>
    <${Reason} run=${run} explanation=${explanation.data} />
    <${Obstacles} run=${run} explanation=${explanation.data} />
    <${RunWaits} run=${run} done=${done} />
    <div class="panes">
      <${Steps} run=${run} address=${address} slow=${new Set(slow.map(({ step }) => step))} />
      <div class="pane">
        <${Pane} run=${run} address=${address} explanation=${explanation.data}>
          ${
            canRetry &&
            isOwned &&
            html`<p><${RetryButton} key=${address.step} run=${run} step=${address.step} kind="small" text="Retry from this step …" /></p>`
          }
        <//>
      </div>
    </div>
    <${RunArtifacts} run=${run} />
    <${ChildRuns} run=${run} />
    <div class="columns">
      <${RunFacts} run=${run} isOver=${isOver(run)} />
      ${run.attempts.length > 1 && html`<${Attempts} attempts=${run.attempts} />`}
    </div>`;
}

/** The left pane. */
function Steps({ run, address, slow }) {
  // A search of the log belongs to one step.
  const linkTo = (step) => linkWithin(address, { step, find: null, attempt: null });
  const views = [
    ['waterfall', 'Waterfall'],
    ['graph', 'Graph'],
  ];
  const aside = html`<nav class="switch" aria-label="Drawing">
    ${views.map(
      ([
        view,
        name,
      ]) => html`<a class="quiet" ...${linkWithin(address, { view: view === 'waterfall' ? null : view })}
        aria-current=${address.view === view ? 'true' : null}>${name}</a>`,
    )}
  </nav>`;
  return html`<${Section} title="Steps" aside=${aside} kind="steps">
    ${
      address.view === 'graph'
        ? html`<${RunGraph} run=${run} chosen=${address.step} linkTo=${linkTo} />`
        : html`<${Waterfall} run=${run} selection=${{ linkTo, chosen: address.step }} slow=${slow} />`
    }
  <//>`;
}
