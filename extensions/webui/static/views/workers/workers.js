// The list of workers: the tools they offer, their jobs, and when they were last seen.

import { html } from '../../preact.js';
import { agentId, call, command, may } from '../../client.js';
import { useStore } from '../../store.js';
import { AskButton } from '../../ui/dialog.js';
import { Nothing, State, Tags } from '../../ui/elements.js';
import { Heading } from '../../ui/layout.js';
import { Filters, List, filtersIn, useList } from '../../ui/list.js';
import { Actor, RunLink, When } from '../../ui/names.js';

const PAGE = 50;
/** The interval of reads, in milliseconds. */
const BEAT = 3000;
/**
 * A worker that was silent for longer than this is lost, in milliseconds. An idle worker asks for jobs at least once a
 * minute.
 */
const LOST_AFTER = 90_000;
const states = { active: 'active', silent: 'lost for a day', drained: 'drained' };
const fields = [{ name: 'state', label: 'State', options: states }];

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
  ['State', (worker) => html`<${Condition} ...${worker} />`],
  ['Tools', ({ tools }) => html`<${Tools} of=${tools} />`, 'grow'],
  ['Labels', ({ labels }) => html`<${Tags} of=${labelsOf(labels)} />`, 'minor'],
  ['Jobs', (worker) => html`<${Jobs} ...${worker} />`],
  ['Registered', ({ registered_at: at }) => html`<${When} at=${at} />`, 'minor'],
  ['Last seen', ({ last_seen_at: at }) => html`<${When} at=${at} />`],
  [
    'Agent',
    ({ agent_id: id, agent_name: name }) => html`<${Actor} id=${id} name=${name} />`,
    'minor',
  ],
  ['Actions', (worker) => html`<${DrainButton} worker=${worker} done=${done} />`, 'num'],
];

/** Whether a worker has neither left nor been heard of recently. */
export const isLost = ({ state, last_seen_at: seen }) =>
  state === 'active' && (seen === null || Date.now() - Date.parse(seen) > LOST_AFTER);

/** Whether a worker is lost, and since when it has ended. */
function Condition(worker) {
  const { state, ended_at: ended } = worker;
  if (useStore(() => isLost(worker))) return html`<${State} of="lost" tone="bad" />`;
  const word = state === 'silent' ? 'lost' : state;
  return html`<${State} of=${word} tone=${state === 'silent' ? 'bad' : undefined} />
    ${ended !== null && html`<p class="hint">ended <${When} at=${ended} /></p>`}`;
}

const labelsOf = (labels) => Object.entries(labels).map(([name, value]) => `${name}: ${value}`);

const Tools = ({ of }) =>
  html`<ul class="list">
    ${of.map(
      ({ name, description }) =>
        html`<li><code>${name}</code> <span class="soft">${description}</span></li>`,
    )}
  </ul>`;

/** A worker's jobs out of its slots, with their runs. A silent worker loses its jobs. */
function Jobs({ jobs, slots }) {
  return html`<span class="num">${jobs.length} of ${slots}</span>
    <ul class="plain">
      ${jobs.map(
        ({ job_id: job, run_id: run, leased_until: until }) => html`<li key=${job}>
          <${RunLink} id=${run} /> <span class="hint">lease ends <${When} at=${until} /></span>
        </li>`,
      )}
    </ul>`;
}

/** Shown for the agent's own workers, and to operators for all workers. */
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
