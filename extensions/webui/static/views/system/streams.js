// The streams of the log, by prefix.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { count } from '../../times.js';
import { Button, Nothing } from '../../ui/elements.js';
import { Heading } from '../../ui/layout.js';
import { Filters, List, filtersIn, useList } from '../../ui/list.js';
import { StreamLink, When } from '../../ui/names.js';
import { SystemTabs } from './system-tabs.js';

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

const readStreams = (query, signal) =>
  call('GET', 'streams', { query: { ...query, limit: PAGE }, signal });

export function StreamsView({ query }) {
  const list = useList('system/streams', filtersIn(query, fields), readStreams, { every: null });
  const empty = html`<${Nothing} text="No stream begins like this.">Enter a whole name or its beginning.<//>`;
  return html`<${Heading} title="Streams" />
    <${SystemTabs} current="system/streams" />
    <${Filters} list=${list} fields=${fields}>
      <div class="row chips" role="group" aria-label="Kinds">
        ${kinds.map(
          (kind) => html`<${Button} kind="small" onClick=${() => list.change('prefix', 0)(kind)}>
            ${kind}
          <//>`,
        )}
      </div>
    <//>
    <${List} list=${list} caption="Streams" columns=${columns} rowKey="stream" empty=${empty} />`;
}
