// One published event: its whole payload, and the runs that it caused with their states.

import { html } from '../../preact.js';
import { call, may } from '../../client.js';
import { learnTitles } from '../../names.js';
import { count } from '../../times.js';
import { Json, Nothing, State, Table } from '../../ui/elements.js';
import { Facts, Heading, LoadedView, Section } from '../../ui/layout.js';
import { Actor, InstantAndDistance, RunLink, TaskLink } from '../../ui/names.js';
import { Updates, useUpdates } from '../../ui/updates.js';
import { readStatesOf, stateOf } from './event-parts.js';
import { TopicLink } from './events.js';

/** Between two reads: its runs are requested shortly after it, and go on. Milliseconds. */
const BEAT = 5000;

export function EventView({ id }) {
  const event = useUpdates(
    async (signal) => {
      const read = await call('GET', `events/${id}`, { signal });
      const { runs } = read;
      await Promise.all([
        learnTitles(
          runs.map(({ task_id: task }) => task),
          signal,
        ),
        readStatesOf(
          runs.map(({ run_id: run }) => run),
          signal,
        ),
      ]);
      return read;
    },
    [],
    { every: BEAT },
  );
  return html`<${LoadedView} of=${event}>${(each) => html`<${Event} event=${each} updates=${event} />`}<//>`;
}

const columns = [
  ['Run', ({ run_id: id }) => html`<${RunLink} id=${id} />`],
  ['Task', ({ task_id: id }) => html`<${TaskLink} id=${id} />`, 'grow'],
  ['State', ({ run_id: id }) => stateOf(id) && html`<${State} of=${stateOf(id)} />`],
];

function Event({ event, updates }) {
  const { event_id: id, topic, namespace, triggered, runs } = event;
  const facts = [
    ['Topic', html`<${TopicLink} topic=${topic} />`],
    ['Published', html`<${InstantAndDistance} at=${event.published_at} />`],
    ['From', html`<${Actor} id=${event.source_agent_id} name=${event.source_agent_name} />`],
    namespace && ['Namespace', namespace],
    ['Tasks triggered', count(triggered)],
    ['ID', html`<code>${id}</code>`],
    ['Number', html`<code>${event.stream_id}</code>`],
  ];
  const all =
    triggered > 0 &&
    may('runs:read') &&
    html`<a href="#/runs?by=event_id&q=${id}">All runs of the event</a>`;
  return html`<${Heading} title="Event of ${topic}" />
    <div class="columns">
      <${Section} title="Payload"><${Json} label="Payload" value=${event.payload} /><//>
      <${Section} title="Facts"><${Facts} of=${facts} /><//>
    </div>
    <${Section} title="Runs" aside=${html`${all} <${Updates} of=${updates} />`}>
      <${Table} caption="Runs" columns=${columns} items=${runs} rowKey="run_id"
        empty=${html`<${Nothing} text="No task listened." />`} />
    <//>`;
}
