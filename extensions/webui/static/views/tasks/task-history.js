// The history of a task: who changed it, when, and why.

import { html } from '../../preact.js';
import { useRemembered } from '../../address.js';
import { call } from '../../client.js';
import { useData } from '../../data.js';
import { Changes } from '../../ui/changes.js';
import { Button, Table } from '../../ui/elements.js';
import { Loaded, Section } from '../../ui/layout.js';
import { Actor, Instant, StreamLink } from '../../ui/names.js';

const PAGE = 50;
const columns = [
  ['No.', 'revision', 'num'],
  ['Event', 'type'],
  ['When', ({ at }) => html`<${Instant} at=${at} />`],
  ['Who', ({ actor, actor_name: name }) => html`<${Actor} id=${actor} name=${name} />`],
  ['Why', 'reason', 'grow'],
  [
    'Changes',
    ({ changes }) =>
      changes.length <= 2
        ? html`<${Changes} of=${changes} />`
        : html`<details>
            <summary>${changes.length} fields</summary><${Changes} of=${changes} />
          </details>`,
    'grow',
  ],
];

export function TaskHistory({ id, version }) {
  const [pages, setPages] = useRemembered('pages of the history', 1);
  const history = useData(
    async (signal) => {
      const items = [];
      let cursor;
      for (let page = 0; page < pages && cursor !== null; page += 1) {
        const query = { limit: PAGE, cursor };
        const read = await call('GET', `tasks/${id}/history`, { query, signal });
        items.push(...read.items);
        cursor = read.next_cursor;
      }
      return { items, isWhole: cursor === null };
    },
    [version, pages],
  );
  const aside = html`<${StreamLink} stream="task-${id}">Step through its events<//>`;
  return html`<${Section} title="History" aside=${aside}>
    <${Loaded} of=${history}>
      ${({ items, isWhole }) => html`<${Table} caption="History" columns=${columns} items=${items}
            rowKey="revision" />
        ${
          !isWhole &&
          html`<${Button} kind="small" onClick=${() => setPages(pages + 1)}>Later events<//>`
        }`}
    <//>
  <//>`;
}
