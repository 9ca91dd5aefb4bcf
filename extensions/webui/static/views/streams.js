// The streams of the log, by prefix.

import { html, useState } from '../preact.js';
import { call } from '../client.js';
import { useData } from '../data.js';
import { filtersIn, useFilters } from '../filters.js';
import { count } from '../times.js';
import { Button, Heading, Loaded, Nothing, Table } from '../ui/elements.js';
import { Filters } from '../ui/field.js';
import { StreamLink, When } from '../ui/names.js';

const PAGE = 50;
const kinds = ['task-', 'fires-', 'run-', 'agent-', 'topic-', 'key-', 'projection-', 'refusals-'];
const fields = [{ name: 'prefix', label: 'Begins with', type: 'search' }];
const columns = [
  [
    'Stream',
    ({ stream }) => html`<${StreamLink} stream=${stream}><code>${stream}</code><//>`,
    'grow',
  ],
  ['Events', ({ revision }) => count(revision + 1), 'num'],
  ['Last event', ({ last_at: at }) => html`<${When} at=${at} />`],
];

export function StreamsView({ query }) {
  const list = useFilters('streams', filtersIn(query, ['prefix']));
  const { filters, cursors } = list.asked;
  const [before, setBefore] = useState([]);
  const streams = useData(
    async (signal) => {
      const cursor = cursors.at(-1);
      const asked = { ...filters, limit: PAGE, cursor };
      const page = await call('GET', 'streams', { query: asked, signal });
      return { ...page, items: [...(cursor === undefined ? [] : before), ...page.items] };
    },
    [list.asked],
  );
  const more = ({ items, next_cursor: next }) => {
    setBefore(items);
    list.turnTo([...cursors, next]);
  };
  return html`<${Heading} title="Streams" />
    <${Filters} list=${list} fields=${fields}>
      <div class="row chips" role="group" aria-label="Kinds">
        ${kinds.map(
          (kind) => html`<${Button} kind="small" onClick=${() => list.change('prefix', 0)(kind)}>
            ${kind}
          <//>`,
        )}
      </div>
    <//>
    <div class="results" aria-live="polite">
      <${Loaded} of=${streams}>
        ${(
          page,
        ) => html`<${Table} caption="Streams" columns=${columns} items=${page.items} keyOf=${({ stream }) => stream}
            empty=${html`<${Nothing} text="No stream begins like this.">
              Enter a whole name or its beginning.
            <//>`} />
          ${
            page.next_cursor !== null &&
            html`<${Button} kind="small" onClick=${() => more(page)}>More<//>`
          }`}
      <//>
    </div>`;
}
