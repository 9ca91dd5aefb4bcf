// The topics that tasks listen to.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { learnTitles } from '../../names.js';
import { counted } from '../../times.js';
import { Nothing } from '../../ui/elements.js';
import { Section } from '../../ui/layout.js';
import { List, useList } from '../../ui/list.js';
import { TaskLink } from '../../ui/names.js';

const PAGE = 25;
/** The most tasks named for a topic. */
const MAX_NAMED_TASKS = 5;

async function readTopics({ after: _after, ...query }, signal) {
  const page = await call('GET', 'topics', { query: { ...query, limit: PAGE }, signal });
  const { topics: items, total_topics: total, next_cursor } = page;
  await learnTitles(
    items.flatMap(({ task_ids: ids }) => ids.slice(0, MAX_NAMED_TASKS)),
    signal,
  );
  return { items, total, next_cursor };
}

export function Topics() {
  const list = useList(null, {}, readTopics);
  const empty = html`<${Nothing} text="No task listens to a topic.">Give a task the schedule kind “event”.<//>`;
  return html`<${Section} title="Topics that tasks listen to">
    <${List} list=${list} caption="Topics" columns=${columns} one="topic" rowKey="topic" empty=${empty} />
  <//>`;
}

const hasWildcard = (pattern) => /[*#]/.test(pattern);

const columns = [
  [
    'Topic',
    ({ topic }) =>
      hasWildcard(topic)
        ? html`<code>${topic}</code>`
        : html`<a class="name" href="#/events?topic=${encodeURIComponent(topic)}"><code>${topic}</code></a>`,
  ],
  ['Tasks', 'active_tasks', 'num'],
  ['Listeners', (topic) => html`<${Listeners} ...${topic} />`, 'grow'],
];

function Listeners({ task_ids: ids, active_tasks: many }) {
  const shown = ids.slice(0, MAX_NAMED_TASKS);
  return html`<ul class="plain">
    ${shown.map((id) => html`<li key=${id}><${TaskLink} id=${id} /></li>`)}
    ${many > shown.length && html`<li class="soft">and ${counted(many - shown.length, 'task')} more</li>`}
  </ul>`;
}
