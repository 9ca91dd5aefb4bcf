// Commands for all ticked tasks, after a preview with their number.

import { html } from '../../preact.js';
import { call, command, reasonHeader } from '../../client.js';
import { counted } from '../../times.js';
import { ask } from '../../ui/dialog.js';
import { Button } from '../../ui/elements.js';

/** The most commands sent at the same time. */
const MAX_CONCURRENT = 4;
/** The most titles in a preview. */
const MAX_NAMED = 12;

const reasonField = { name: 'reason', label: 'Why (goes into the log)', maxlength: 500 };
const post =
  (path) =>
  (task, { reason }) =>
    command(`tasks/${task.id}/${path}`, { reason });

/**
 * The commands by name: which tasks one applies to, why not to others, and what it does to each. `verb` is in the
 * button: `Pause 12 tasks`
 */
const commands = {
  Pause: {
    applies: ({ status }) => status === 'active',
    otherwise: 'not active',
    text: 'They do not fire until they are resumed. Runs that have started continue.',
    act: post('pause'),
  },
  Resume: {
    applies: ({ status }) => status === 'paused',
    otherwise: 'not paused',
    text: 'They continue with their next fires. Fires that the pause held back are not run.',
    act: post('resume'),
  },
  Run: {
    applies: () => true,
    text: 'One run of each is requested now, with its default params.',
    act: post('run_now'),
  },
  Tag: {
    applies: () => true,
    fields: [
      { name: 'add', label: 'Add tags (separated by commas)' },
      { name: 'remove', label: 'Remove tags' },
    ],
    act: changeTags,
  },
  Cancel: {
    applies: () => true,
    kind: 'danger',
    text: 'They never fire again. Their queued runs are canceled; running runs are asked to stop.',
    act: post('cancel'),
  },
};

/**
 * @param {object[]} tasks those that are ticked and visible
 * @param {(refused: string[]) => Promise<unknown>} done called after a command with the ids of the tasks that refused it
 */
export function BulkActions({ tasks, done }) {
  if (tasks.length === 0) return null;
  const buttons = Object.keys(commands).map(
    (name) => html`<${Button} key=${name} kind="small ${commands[name].kind ?? ''}"
      onClick=${() => open(name, tasks, done)}>${name} …<//>`,
  );
  return html`<div class="row middle bulk" role="group" aria-label="Selected tasks">
    <strong aria-live="polite">${counted(tasks.length, 'task')} selected</strong>${buttons}
  </div>`;
}

async function open(name, tasks, done) {
  const { applies, otherwise, text, fields = [], kind, act } = commands[name];
  const chosen = tasks.filter(applies);
  const left = tasks.length - chosen.length;
  // Trying again leaves out the tasks that are done.
  let pending = chosen;
  const preview = async (values) => {
    const problem =
      name === 'Tag' && tagsIn(values.add).length + tagsIn(values.remove).length === 0;
    if (problem) throw new Error('Enter tags to add or to remove.');
    const shown = html`<div class="outcome">
      <p>${pending
        .slice(0, MAX_NAMED)
        .map(({ title }) => title)
        .join(', ')}${pending.length > MAX_NAMED && ` and ${pending.length - MAX_NAMED} more`}</p>
      ${left > 0 && html`<p class="hint">${counted(left, 'selected task')} ${left === 1 ? 'is' : 'are'} ${otherwise} and stay${left === 1 ? 's' : ''} as ${left === 1 ? 'it is' : 'they are'}.</p>`}
    </div>`;
    return {
      shown,
      action: pending.length === 0 ? null : `${name} ${counted(pending.length, 'task')}`,
    };
  };
  const send = async (values) => {
    const asked = pending.length;
    const refused = await actOnAll(pending, (task) => act(task, values));
    if (refused.length === 0) return;
    pending = refused.map(({ task }) => task);
    const texts = refused.map(({ task, error }) => `${task.title}: ${error.message}`);
    throw new Error(
      `${asked - refused.length} of ${counted(asked, 'task')} done. ${texts.join('; ')}`,
    );
  };
  const isDone = await ask({
    title: `${name} the selected tasks?`,
    text,
    fields: [...fields, reasonField],
    action: name,
    ...(kind === 'danger' ? { kind, dismiss: 'Back' } : {}),
    preview,
    act: send,
    done: `${name}: ${counted(chosen.length, 'task')}`,
  });
  if (isDone) await done([]);
  else if (pending !== chosen) await done(pending.map(({ id }) => id));
}

/**
 * Sends the commands, a few at a time. A rejected one does not stop the others.
 * @returns the rejected ones: `{task, error}`
 */
async function actOnAll(tasks, act) {
  const waiting = [...tasks];
  const refused = [];
  const work = async () => {
    for (let task = waiting.shift(); task !== undefined; task = waiting.shift()) {
      try {
        await act(task);
      } catch (error) {
        refused.push({ task, error });
      }
    }
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT }, work));
  return refused;
}

const tagsIn = (text = '') =>
  text
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');

/** Sent with the revision that was shown, so nobody's change in the meantime is overwritten. */
function changeTags(task, { reason, add, remove }) {
  const removed = tagsIn(remove);
  const tags = [...new Set([...task.tags, ...tagsIn(add)])].filter((tag) => !removed.includes(tag));
  const headers = { 'If-Match': `"${task.revision}"`, ...reasonHeader(reason) };
  return call('PUT', `tasks/${task.id}`, { body: { tags }, headers });
}
