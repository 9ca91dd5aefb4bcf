// The revisions of a task's definition: compares two of them, and restores one.

import { html } from '../../preact.js';
import { setAddress } from '../../address.js';
import { call, mayChange, reasonHeader } from '../../client.js';
import { useData } from '../../data.js';
import { counted } from '../../times.js';
import { Changes } from '../../ui/changes.js';
import { ask } from '../../ui/dialog.js';
import { Button, Table } from '../../ui/elements.js';
import { Loaded, Section } from '../../ui/layout.js';
import { Actor, Instant } from '../../ui/names.js';
import { differences, definitionOf } from './definition.js';

/** Revisions in one request. */
const PAGE = 200;
const defining = ['TaskCreated', 'TaskUpdated'];
/** Used in place of a revision: the present task. */
const NOW = 'now';

/**
 * @param {object} task in its present state
 * @param {URLSearchParams} query of the address: `compare` and `with` name the revisions to compare
 * @param done called after a revision was restored
 */
export function Revisions({ task, version, query, done }) {
  const compare = (revision, other = NOW) => {
    const place = {
      tab: 'definition',
      compare: revision,
      ...(other === NOW ? {} : { with: other }),
    };
    setAddress(`tasks/${task.id}`, new URLSearchParams(place));
  };
  const revisions = useData((signal) => readRevisions(task.id, signal), [version]);
  const columns = [
    ['No.', 'revision', 'num'],
    ['When', ({ at }) => html`<${Instant} at=${at} />`],
    ['Who', ({ actor, actor_name: name }) => html`<${Actor} id=${actor} name=${name} />`],
    ['Why', 'reason', 'grow'],
    [
      'Actions',
      (item) => html`<div class="row">
        <${Button} kind="small" label="Compare revision ${item.revision}" onClick=${() => compare(item.revision)}>Compare<//>
        ${
          item.revision !== task.revision &&
          mayChange(task) &&
          task.status !== 'canceled' &&
          html`<${Button} kind="small" label="Restore this revision … ${item.revision}"
            onClick=${() => restore(task, item, done)}>Restore this revision …<//>`
        }
      </div>`,
      'num',
    ],
  ];
  return html`<${Section} title="Revisions">
    <${Loaded} of=${revisions}>
      ${(
        items,
      ) => html`<${Table} caption="Revisions" columns=${columns} items=${items} rowKey="revision" />
        <${Comparison} key=${query.get('compare')} task=${task} items=${items} query=${query} compare=${compare} />`}
    <//>
  <//>`;
}

/** The revisions that changed the definition, newest first. */
async function readRevisions(id, signal) {
  const items = [];
  for (let cursor; ;) {
    const query = { limit: PAGE, cursor };
    const page = await call('GET', `tasks/${id}/history`, { query, signal });
    items.push(...page.items);
    if (page.next_cursor === null) break;
    cursor = page.next_cursor;
  }
  return items.filter(({ type }) => defining.includes(type)).reverse();
}

/** The task at a revision. @throws Error if a later revision has the same time */
async function taskAt(id, { at, revision }, signal) {
  const task = await call('GET', `tasks/${id}`, { query: { as_of: at }, signal });
  if (task.revision === revision) return task;
  throw new Error(`Revision ${revision} lasted less than a millisecond and cannot be shown.`);
}

const withNumber = (items, number) => items.find(({ revision }) => String(revision) === number);

/** Renders nothing without a revision in the address. */
function Comparison({ task, items, query, compare }) {
  const item = withNumber(items, query.get('compare'));
  const other = query.get('with') ?? NOW;
  const against = withNumber(items, other);
  const found = useData(
    async (signal) => {
      if (item === undefined) return [];
      const [one, two] = await Promise.all([
        taskAt(task.id, item, signal),
        against === undefined ? task : taskAt(task.id, against, signal),
      ]);
      return differences(definitionOf(one), definitionOf(two));
    },
    [other, task.revision],
  );
  if (item === undefined) return null;
  const choices = items.filter(({ revision }) => revision !== item.revision);
  return html`<div class="field">
      <label for="compare-with">From revision ${item.revision} to</label>
      <select id="compare-with" value=${other} onChange=${({ target }) => compare(item.revision, target.value)}>
        <option value=${NOW}>the present definition</option>
        ${choices.map(({ revision }) => html`<option value=${revision}>revision ${revision}</option>`)}
      </select>
    </div>
    <${Loaded} of=${found}>
      ${(changes) =>
        changes.length === 0
          ? html`<p class="soft">There are no differences.</p>`
          : html`<div class="diff" tabindex="0" role="region" aria-label="Differences"><${Changes} of=${changes} /></div>`}
    <//>`;
}

/** Shows what would change and asks for confirmation. Fails if somebody else has changed the task in the meantime. */
async function restore(task, item, done) {
  const old = definitionOf(await taskAt(task.id, item));
  const now = definitionOf(task);
  const names = Object.keys(old).filter(
    (name) => JSON.stringify(old[name]) !== JSON.stringify(now[name]),
  );
  if (names.length === 0) throw new Error(`Revision ${item.revision} is the present definition.`);
  const body = Object.fromEntries(names.map((name) => [name, old[name]]));
  const changes = differences(now, old);
  const isDone = await ask({
    title: `Restore revision ${item.revision}?`,
    text: html`${counted(names.length, 'field')} would change. It becomes a new revision.
      <div class="diff"><${Changes} of=${changes} /></div>`,
    fields: [{ name: 'reason', label: 'Why (goes into the log)', maxlength: 500 }],
    action: 'Restore',
    act: ({ reason }) =>
      call('PUT', `tasks/${task.id}`, {
        body,
        headers: { 'If-Match': `"${task.revision}"`, ...reasonHeader(reason) },
      }),
    done: `Revision ${item.revision} was restored.`,
  });
  if (isDone) await done();
}
