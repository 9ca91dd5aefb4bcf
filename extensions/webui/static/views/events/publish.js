// Publishes a test event, after showing which tasks it would trigger.

import { html } from '../../preact.js';
import { agentId, call, command, may, ownNamespace } from '../../client.js';
import { parseTyped } from '../../json.js';
import { learnTitles } from '../../names.js';
import { getState, notify } from '../../store.js';
import { counted } from '../../times.js';
import { ask } from '../../ui/dialog.js';
import { Button } from '../../ui/elements.js';
import { TaskLink } from '../../ui/names.js';

/** The most tasks that the preview names. */
const MAX_NAMED_TASKS = 10;

/**
 * @param {string} topic the initial value
 * @param {(topic: string) => void} done called after the event was published
 */
export function PublishButton({ topic = '', done }) {
  let published = topic;
  const dialog = {
    title: 'Publish a test event',
    text: `It is a real event of the namespace ${ownNamespace()}: it triggers every active task that listens to its topic.`,
    action: 'Publish',
    fields: [
      {
        name: 'topic',
        label: 'Topic',
        value: topic,
        placeholder: 'orders.created',
        required: 'Enter a topic.',
      },
      { name: 'payload', label: 'Payload (JSON)', type: 'textarea', rows: 6, value: '{}' },
    ],
    act: async (values) => {
      const body = { topic: values.topic, payload: payloadOf(values), source_agent_id: agentId() };
      const { details } = await command('events', { body });
      published = values.topic;
      notify(`Published: ${counted(details.triggered_tasks.length, 'task')} triggered.`);
    },
    ...(may('tasks:read') ? { preview } : {}),
  };
  const open = async () => {
    if (await ask(dialog)) done?.(published);
  };
  return html`<${Button} kind="main-action" onClick=${open}>Publish test event<//>`;
}

/** @throws Error if it is not a JSON object */
function payloadOf({ payload }) {
  let value;
  try {
    value = parseTyped(payload);
  } catch (error) {
    throw new Error(`Payload: ${error.message}`);
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new Error('Payload: must be a JSON object, such as {}.');
  }
  return value;
}

/** Which tasks listen. @returns as the dialog takes it */
async function preview(values) {
  payloadOf(values);
  const namespaces = getState().namespaces.length > 1 ? { namespace: ownNamespace() } : {};
  const query = { matching: values.topic, limit: 200, ...namespaces };
  const { topics } = await call('GET', 'topics', { query });
  const many = topics.reduce((sum, { active_tasks: tasks }) => sum + tasks, 0);
  const ids = topics.flatMap(({ task_ids: tasks }) => tasks).slice(0, MAX_NAMED_TASKS);
  await learnTitles(ids);
  const rest = many - ids.length;
  const shown = html`<p>${many === 0 ? 'No task listens to this topic.' : `Triggers ${counted(many, 'task')}:`}</p>
    <ul class="plain">
      ${ids.map((id) => html`<li key=${id}><${TaskLink} id=${id} /></li>`)}
      ${rest > 0 && html`<li class="soft">and ${counted(rest, 'task')} more</li>`}
    </ul>`;
  return { shown, action: many === 0 ? 'Publish' : `Publish, and start ${counted(many, 'run')}` };
}
