// The list of approvals: pending and decided ones, updated live.

import { html } from '../../preact.js';
import { call, may } from '../../client.js';
import { useLive } from '../../live.js';
import { learnTitles } from '../../names.js';
import { State } from '../../ui/elements.js';
import { Heading } from '../../ui/layout.js';
import { Filters, List, useList } from '../../ui/list.js';
import { Actor, RunLink, TaskLink, When } from '../../ui/names.js';
import { ApprovalButtons } from './approval-buttons.js';

const PAGE = 30;
/** The delay between a change and reading the list again, in milliseconds. */
const PACE = 1000;
const ALL = 'all';
const states = ['pending', 'approved', 'rejected', 'expired', 'canceled', ALL];
const fields = [{ name: 'state', label: 'State', options: states }];

async function readApprovals({ state, ...query }, signal) {
  const wanted = { ...query, state: state === ALL ? '' : state, limit: PAGE };
  const page = await call('GET', 'approvals', { query: wanted, signal });
  await learnTitles(
    page.items.map(({ task_id: task }) => task),
    signal,
  );
  return page;
}

/** Whether an event of the live stream may change which approvals are pending. */
export const concernsApprovals = (name, { run }) =>
  name === 'live.started' || (run?.waits ?? []).some(({ kind }) => kind === 'approval');

export function ApprovalsView({ query }) {
  const follows = may('runs:read');
  const initial = { state: query.get('state') ?? 'pending', run_id: query.get('run_id') ?? '' };
  const list = useList('approvals', initial, readApprovals, { pace: PACE });
  const isLive = follows && list.liveness !== 'paused';
  useLive(isLive ? 'runs/live' : null, (name, data) => {
    if (concernsApprovals(name, data)) list.refresh(data.position);
  });
  const { run_id: run } = initial;
  const beside =
    run !== '' &&
    html`<span class="soft">of <${RunLink} id=${run} prefix="run " /></span> <a href="#/approvals">all</a>`;
  return html`<${Heading} title="Approvals" beside=${beside} />
    <${Filters} list=${list} fields=${fields} />
    <${List} list=${list} caption="Approvals" columns=${columnsOf(list.reload)} one="approval"
      empty="Nothing is waiting for approval." />`;
}

const columnsOf = (done) => [
  [
    'Message',
    ({ id, message }) => html`<a class="name" href="#/approvals/${id}">${message}</a>`,
    'grow',
  ],
  ['Task', ({ task_id: id }) => html`<${TaskLink} id=${id} />`],
  ['Run', ({ run_id: id }) => html`<${RunLink} id=${id} />`],
  ['Step', ({ step }) => html`<code>${step}</code>`, 'minor'],
  ['Requested', ({ requested_at: at }) => html`<${When} at=${at} />`],
  [
    'Expires',
    ({ state, expires_at: at }) => (state === 'pending' ? html`<${When} at=${at} />` : '–'),
  ],
  [
    'Approvers',
    ({ approvers, approver_names: names }) => html`<${Approvers} of=${approvers} names=${names} />`,
    'minor',
  ],
  ['State', (approval) => html`<${Decision} ...${approval} />`],
  [
    'Actions',
    (approval) =>
      approval.state === 'pending' &&
      html`<${ApprovalButtons} approval=${approval} done=${done} />`,
    'num',
  ],
];

/** Agents by name, and scopes. */
export function Approvers({ of, names }) {
  if (of === null) return html`<code>approvals:write</code>`;
  return of.map((each, index) =>
    each.startsWith('scope:')
      ? html`<code>${each.slice('scope:'.length)}</code> `
      : html`<${Actor} id=${each} name=${names[index]} /> `,
  );
}

function Decision({ state, decided_by: agent, decided_by_name: name, decided_at: at, comment }) {
  return html`<${State} of=${state} />
    ${agent !== null && html`<p class="hint"><${Actor} id=${agent} name=${name} />, <${When} at=${at} /></p>`}
    ${comment !== null && html`<p class="hint">${comment}</p>`}`;
}
