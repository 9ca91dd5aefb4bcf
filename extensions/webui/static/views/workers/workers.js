// Workers: what they offer, which jobs they have, and when they were last seen.

import { html } from '../../preact.js';
import { agentId, call, command, may } from '../../client.js';
import { AskButton } from '../../ui/dialog.js';
import { Nothing, State, Tags } from '../../ui/elements.js';
import { Heading } from '../../ui/layout.js';
import { Filters, List, filtersIn, useList } from '../../ui/list.js';
import { Actor, RunLink, When } from '../../ui/names.js';

const PAGE = 50;
/** Between two reads. Milliseconds. */
const BEAT = 3000;
const fields = [{ name: 'state', label: 'State', options: ['active', 'drained', 'silent'] }];

const readWorkers = (query, signal) =>
  call('GET', 'workers', { query: { ...query, limit: PAGE }, signal });

export function WorkersView({ query }) {
  const { state } = filtersIn(query, fields);
  const list = useList('workers', { state: state || 'active' }, readWorkers, { every: BEAT });
  const beside = !may('ops') && html`<span class="soft">those of your agent</span>`;
  const empty = html`<${Nothing} text="No such worker.">A worker appears here once it has registered.<//>`;
  return html`<${Heading} title="Workers" beside=${beside} />
    <${Filters} list=${list} fields=${fields} />
    <${List} list=${list} caption="Workers" columns=${columnsOf(list.reload)} one="worker" empty=${empty} />`;
}

const columnsOf = (done) => [
  ['Name', ({ name }) => html`<span class="name">${name}</span>`],
  ['State', ({ state }) => html`<${State} of=${state} />`],
  ['Tools', ({ tools }) => html`<${Tools} of=${tools} />`, 'grow'],
  ['Labels', ({ labels }) => html`<${Tags} of=${labelsOf(labels)} />`, 'minor'],
  ['Jobs', (worker) => html`<${Jobs} ...${worker} />`],
  ['Last seen', ({ last_seen_at: at }) => html`<${When} at=${at} />`],
  ['Agent', ({ agent_id: id }) => html`<${Actor} id=${id} />`, 'minor'],
  ['Actions', (worker) => html`<${DrainButton} worker=${worker} done=${done} />`, 'num'],
];

const labelsOf = (labels) => Object.entries(labels).map(([name, value]) => `${name}: ${value}`);

const Tools = ({ of }) =>
  html`<ul class="list">
    ${of.map(
      ({ name, description }) =>
        html`<li><code>${name}</code> <span class="soft">${description}</span></li>`,
    )}
  </ul>`;

/** How many jobs it has of those that it takes at once, and their runs. */
function Jobs({ jobs, slots }) {
  const links = jobs.map(
    ({ job_id: job, run_id: run }) => html`<${RunLink} key=${job} id=${run} /> `,
  );
  return html`${jobs.length} of ${slots}<div>${links}</div>`;
}

/** Offered for the agent's own workers, and to operators for all. */
function DrainButton({ worker: { id, name, state, agent_id: owner }, done }) {
  const isOwn = owner === agentId() && may('jobs:work');
  if (state !== 'active' || !(isOwn || may('ops'))) return null;
  const dialog = {
    title: `Drain ${name}?`,
    text: 'It gets no more jobs. It may still complete those that it has.',
    act: ({ reason }) => command(`workers/${id}`, { method: 'DELETE', reason }),
    done: `${name} gets no more jobs.`,
  };
  return html`<${AskButton} text="Drain" kind="danger small" label="Drain ${name}" dialog=${dialog}
    done=${done} />`;
}
