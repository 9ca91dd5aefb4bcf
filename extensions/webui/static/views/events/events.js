// Topics with the tasks that listen to them, and the latest events with the runs that each caused.

import { html } from '../../preact.js';
import { call, may } from '../../client.js';
import { Heading } from '../../ui/layout.js';
import { Filters, List, filtersIn, useList } from '../../ui/list.js';
import { EventDetails, EventRuns, readStates } from './event-parts.js';
import { PublishButton } from './publish.js';
import { Topics } from './topics.js';
import { learnTitles } from '../../names.js';
import { Nothing } from '../../ui/elements.js';
import { Actor, When } from '../../ui/names.js';

const PAGE = 20;
const fields = [{ name: 'topic', label: 'Topic', type: 'search', placeholder: 'orders.created' }];

/** A topic that the service would accept. A half-typed one is not sent. */
const isTopic = (text) => /^[A-Za-z0-9_.:/-]{1,200}$/.test(text);

async function readEvents({ topic, ...query }, signal) {
  if (topic !== '' && !isTopic(topic)) return { items: [], next_cursor: null };
  const page = await call('GET', 'events', { query: { ...query, topic, limit: PAGE }, signal });
  const runs = page.items.flatMap((event) => event.runs);
  await Promise.all([
    learnTitles(
      runs.map(({ task_id: task }) => task),
      signal,
    ),
    readStates(page.items, signal),
  ]);
  return page;
}

export function EventsView({ query }) {
  return html`${may('events:read') ? html`<${Latest} query=${query} />` : html`<${Head} />`}
    ${may('tasks:read') && html`<${Topics} />`}`;
}

const Head = ({ topic, done }) =>
  html`<${Heading} title="Events">
    ${may('events:publish') && html`<${PublishButton} topic=${topic} done=${done} />`}
  <//>`;

function Latest({ query }) {
  const list = useList('events', filtersIn(query, fields), readEvents);
  const empty = html`<${Nothing} text="No events.">An event triggers the tasks that listen to its topic.<//>`;
  // If the filter excluded the new event, it would seem lost.
  const show = (topic) => {
    if (list.typed.topic !== '' && list.typed.topic !== topic) list.change('topic', 0)(topic);
    else void list.reload();
  };
  return html`<${Head} topic=${list.asked.filters.topic} done=${show} />
    <${Filters} list=${list} fields=${fields} />
    <${List} list=${list} caption="Latest events" columns=${columns} one="event" rowKey="event_id" empty=${empty} />`;
}

/** A topic, as a link to its events. */
export const TopicLink = ({ topic }) =>
  html`<a href="#/events?topic=${encodeURIComponent(topic)}"><code>${topic}</code></a>`;

const columns = [
  [
    'When',
    ({ event_id: id, published_at: at }) =>
      html`<a class="name" href="#/events/${id}"><${When} at=${at} /></a>`,
  ],
  ['Topic', ({ topic }) => html`<${TopicLink} topic=${topic} />`],
  [
    'From',
    ({ source_agent_id: id, source_agent_name: name }) => html`<${Actor} id=${id} name=${name} />`,
    'minor',
  ],
  ['Payload', (event) => html`<${EventDetails} event=${event} />`, 'grow'],
  ['Runs', (event) => html`<${EventRuns} event=${event} />`],
];
