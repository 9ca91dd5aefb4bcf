// Entries of the audit as a table.

import { html } from '../../preact.js';
import { count, dateText } from '../../times.js';
import { Button, Link, State, Table } from '../../ui/elements.js';
import { Failure } from '../../ui/layout.js';
import { Actor, RunLink, StreamLink, TaskLink, When } from '../../ui/names.js';

const columns = [
  ['When', ({ at }) => html`<${When} at=${at} />`],
  ['Who', ({ actor, actor_name: name }) => html`<${Actor} id=${actor} name=${name} />`],
  [
    'Outcome',
    ({ outcome }) =>
      outcome === 'refused'
        ? html`<${State} of="refused" />`
        : html`<span class="soft">${outcome}</span>`,
  ],
  ['What', (entry) => html`<${What} ...${entry} />`, 'grow'],
  ['Why', 'reason', 'minor'],
  ['From', 'source', 'minor'],
];

/** @param entries as `useEntries` shows them; `readOlder` reads a page more */
export function AuditEntries({ entries: { items, page, error, read }, readOlder }) {
  if (error !== null) return html`<${Failure} error=${error} retry=${read} />`;
  const isMore = (page.next_cursor ?? null) !== null;
  const isCounted = (page.total ?? null) !== null;
  return html`${isCounted && html`<p class="soft">${count(page.total)} in all</p>`}
    <${Table} caption="Audit" columns=${columns} items=${items} rowKey="position" empty="No entry matches." />
    ${isMore && html`<${Button} kind="small" onClick=${readOlder}>Older<//>`}`;
}

/** The views that show the subjects of streams. */
const places = { task: 'tasks', run: 'runs', agent: 'agents' };

/** The name of an entry's subject, with a link to its view. */
function Subject({ stream, name }) {
  const [kind] = stream.split('-', 1);
  const place = places[kind];
  if (place === undefined) return name;
  return html`<${Link} to="${place}/${stream.slice(kind.length + 1)}">${name}<//>`;
}

/** The task and the run that used a secret. */
const Use = ({ of: { task_id: task, run_id: run, version } }) =>
  html`${version !== null && `version ${version} `}
    ${task !== null && html`in <${TaskLink} id=${task} /> `}
    ${run !== null && html`<${RunLink} id=${run} prefix="run " />`}`;

/** The action, its subject, and why it was refused. */
function What({ action, type, stream, task_title: title, subject, revision, refusal, call, use }) {
  const isEvent = refusal === null && call === null;
  const times = (of) =>
    of.count > 1 &&
    `${count(of.count)} times from ${dateText(of.first_at)} to ${dateText(of.last_at)}`;
  const link = html`<${StreamLink} stream=${stream} at=${revision} kind="name">
    ${isEvent ? type : action}
  <//>`;
  const isNotable = call !== null && (call.code !== null || call.count > 1);
  const name = title ?? use?.name ?? subject;
  return html`${link}${name !== null && html` <${Subject} stream=${stream} name=${name} />`}
    ${isEvent && html` <code class="soft">${stream}</code>`}
    ${use && html`<p class="hint"><${Use} of=${use} /> ${times(use)}</p>`}
    ${
      refusal !== null &&
      html`<p class="hint">
      ${refusal.status} ${refusal.code}${refusal.path !== null && html` at <code>${refusal.path}</code>`}
      ${refusal.count > 1 && `, ${times(refusal)}`}
    </p>`
    }
    ${isNotable && html`<p class="hint">${call.code} ${times(call)}</p>`}`;
}
