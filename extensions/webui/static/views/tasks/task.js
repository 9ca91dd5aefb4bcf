// One task: its runs, its calendar, its definition and its history, each with an address.

import { html, useState } from '../../preact.js';
import { callFully, may, mayChange } from '../../client.js';
import { useLive } from '../../live.js';
import { learnTitle } from '../../names.js';
import { State } from '../../ui/elements.js';
import { Heading, LoadedView } from '../../ui/layout.js';
import { Updates, together, usePause, useUpdates } from '../../ui/updates.js';
import { useTaskZone } from '../../zones.js';
import { Backfills } from './backfills.js';
import { Calendar } from './calendar.js';
import { Explainer } from './explainer.js';
import { BackfillButton, TaskActions } from './task-actions.js';
import { TaskDefinition } from './task-definition.js';
import { TaskHistory } from './task-history.js';
import { PausedBy, SnoozedBy } from './task-notes.js';
import { TaskRuns } from './task-runs.js';

/** The interval of reads of the task in milliseconds. Some changes of a task come without a run. */
const BEAT = 5000;
/** The delay in milliseconds between an event and the next read, since a task may run each second. */
const PACE = 1000;

export function TaskView({ id, query }) {
  const [backfills, setBackfills] = useState(0);
  const pausing = usePause();
  const task = useUpdates(
    async (signal) => {
      const { body, headers } = await callFully('GET', `tasks/${id}`, { signal });
      learnTitle(body);
      return { task: body, etag: headers.get('etag') };
    },
    [],
    { every: BEAT, pace: PACE, pausing },
  );
  const backfilled = () => setBackfills((before) => before + 1);
  return html`<${LoadedView} of=${task}>
    ${(each) =>
      html`<${Task} ...${each} of=${task} pausing=${pausing} query=${query} backfills=${backfills} backfilled=${backfilled} />`}
  <//>`;
}

/** The tabs, by name. */
const tabs = {
  runs: 'Runs',
  calendar: 'Calendar',
  definition: 'Definition',
  history: 'History',
};

function Task({ task, etag, of, pausing, query, backfills, backfilled }) {
  const { refresh, reload } = of;
  const { id } = task;
  useTaskZone(task.timezone);
  const asked = query.get('tab');
  const isKnown = asked in tabs && (asked !== 'history' || may('audit:read'));
  const tab = isKnown ? asked : 'runs';
  // Fires and history are read again after each change of the task and each backfill.
  const version = `${task.revision} ${backfills}`;
  const [runs, setRuns] = useState(0);
  const mayFollow = may('runs:read');
  const live = useLive(mayFollow && !pausing.isPaused ? `tasks/${id}/live` : null, (name) => {
    if (name === 'live.ended' || name === 'live.started') return;
    setRuns((before) => before + 1);
    refresh();
  });
  // Without the runs, the task is still read again and again.
  const updates = together(pausing, [of], mayFollow ? live : undefined);
  return html`<${TaskHeading} task=${task} updates=${updates} done=${reload} backfilled=${backfilled} />
    <nav class="tabs" aria-label="Of this task">
      ${Object.entries(tabs)
        .filter(([name]) => name !== 'history' || may('audit:read'))
        .map(
          ([
            name,
            text,
          ]) => html`<a key=${name} href="#/tasks/${id}${name === 'runs' ? '' : `?tab=${name}`}"
            aria-current=${name === tab ? 'page' : null}>${text}</a>`,
        )}
    </nav>
    ${tab === 'runs' && html`<${TaskRuns} task=${task} version=${version} changes=${runs} pausing=${pausing} />`}
    ${
      tab === 'calendar' &&
      html`<${Calendar} task=${task} version=${version} query=${query} pausing=${pausing} />
        <${Explainer} id=${id} query=${query} />
        <${Backfills} task=${task} version=${version} />`
    }
    ${tab === 'definition' && html`<${TaskDefinition} task=${task} etag=${etag} query=${query} done=${reload} />`}
    ${tab === 'history' && html`<${TaskHistory} id=${id} version=${version} />`}`;
}

function TaskHeading({ task, updates, done, backfilled }) {
  const isChangeable = mayChange(task) && task.status !== 'canceled';
  const beside = html`${task.status !== 'paused' && html`<${State} of=${task.status} />`}<${Updates} of=${updates} />`;
  return html`<${Heading} title=${task.title} beside=${beside}>
      <${TaskActions} task=${task} done=${done} />
      <${BackfillButton} task=${task} done=${backfilled} />
      ${isChangeable && html`<a class="button" href="#/tasks/${task.id}?tab=definition">Change</a>`}
    <//>
    ${task.status === 'paused' && html`<p><${PausedBy} task=${task} /></p>`}
    ${task.snoozed && html`<p><${SnoozedBy} task=${task} /></p>`}
    ${task.warnings.map((warning) => html`<p class="fault">${warning}</p>`)}`;
}
