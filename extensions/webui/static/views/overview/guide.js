// The first steps on an empty service.

import { html, useState } from '../../preact.js';
import { agentId, call, command, may } from '../../client.js';
import { learnTitle } from '../../names.js';
import { getState } from '../../store.js';
import { Button, Link } from '../../ui/elements.js';
import { Heading } from '../../ui/layout.js';
import { TaskLink } from '../../ui/names.js';

const example = {
  title: 'Say hello',
  description: 'A first task. It says hello every morning.',
  schedule_kind: 'cron',
  schedule_expr: '0 9 * * *',
  payload: { pipeline: [{ id: 'hello', uses: 'echo', with: { text: 'Hello' } }] },
};

/** Agents and namespaces for which something has run. They are not checked again. */
const begun = new Set();
const seen = () => `${agentId()} ${getState().namespace}`;

/** Whether something is known to have run; also true for agents that may not see tasks. */
export const hasBegun = () => !may('tasks:read') || !may('runs:read') || begun.has(seen());

/** The only task, if nothing has run yet; null once something has. */
export async function readBeginning(signal) {
  const asked = seen();
  const one = { query: { limit: 1 }, signal };
  const [tasks, runs] = await Promise.all([call('GET', 'tasks', one), call('GET', 'runs', one)]);
  if (runs.total === 0 && tasks.total <= 1) return { task: tasks.items[0] ?? null };
  begun.add(asked);
  return null;
}

/** @param task the only one, or null @param done called when there is something to see */
export function Guide({ task: known, done }) {
  const [task, setTask] = useState(known);
  const [run, setRun] = useState(null);
  const create = async () => {
    const { id, title } = await command('ext/webui/api/tasks', { body: example });
    learnTitle({ id, title });
    setTask({ id, title });
  };
  const start = async () => {
    const { details } = await command(`tasks/${task.id}/run_now`);
    setRun(details.run_id);
  };
  const mayWrite = may('tasks:write');
  return html`<${Heading} title="Overview" />
    <section class="guide">
      <div class="head"><h2>Nothing has run here yet. Three steps show how it works.</h2></div>
      <ol>
        <li class=${task === null ? '' : 'done'}>
          <strong>Create a task.</strong> A task has a schedule, and a pipeline of steps that each call a tool.
          ${
            task !== null
              ? html`<p>✓ <${TaskLink} id=${task.id} /></p>`
              : mayWrite
                ? html`<p class="row middle">
                    <${Button} kind="main-action" onClick=${create}>Create an example task<//>
                    <a href="#/tasks/new">Write your own</a>
                  </p>`
                : html`<p class="soft">Your agent lacks the scope <code>tasks:write</code>  for this.</p>`
          }
        </li>
        <li class=${run === null ? '' : 'done'}>
          <strong>Run it now.</strong> It also runs by itself whenever its schedule fires.
          ${
            run !== null
              ? html`<p>✓ It runs.</p>`
              : task !== null &&
                mayWrite &&
                html`<p><${Button} kind="main-action" onClick=${start}>Run it now<//></p>`
          }
        </li>
        <li>
          <strong>See what it did.</strong> Each run shows its steps, what they returned, and why it ran.
          ${
            run !== null &&
            html`<p class="row middle">
              <a class="button main-action" href="#/runs/${run}">See the run</a>
              <${Button} onClick=${done}>Go to the overview<//>
            </p>`
          }
        </li>
      </ol>
      <p class="hint">
        Programs and agents do the same over the API, <${Link} to="agents">with keys of their own<//>.
      </p>
    </section>`;
}
