// The definition of a task: its graph, the form that changes it, and its revisions.

import { html, useState } from '../../preact.js';
import { may, mayChange } from '../../client.js';
import { Json } from '../../ui/elements.js';
import { Section } from '../../ui/layout.js';
import { StepGraph } from '../../ui/graph.js';
import { Revisions } from './revisions.js';
import { Form } from './task-form.js';

/**
 * The form does not change while a person types, even if somebody else changes the task. Saving then reports the
 * conflict.
 * @param {URLSearchParams} query of the address
 * @param done called once a revision was restored
 */
export function TaskDefinition({ task, etag, query, done }) {
  const [form, setForm] = useState(() => ({ key: 0, task, etag }));
  const [isRestored, setRestored] = useState(false);
  if (isRestored && form.etag !== etag) {
    setRestored(false);
    setForm({ key: form.key + 1, task, etag });
  }
  const restored = async () => {
    setRestored(true);
    await done();
  };
  const isChangeable = mayChange(task) && task.status !== 'canceled';
  const duplicate =
    may('tasks:write') &&
    html`<a class="button small" href="#/tasks/new?from=${task.id}">Duplicate</a>`;
  return html`<${Section} title="Graph of steps" aside=${duplicate}>
      <${StepGraph} pipeline=${task.payload.pipeline} />
    <//>
    ${
      isChangeable
        ? html`<${Form} ...${form} />`
        : html`<${Section} title="Pipeline"><${Json} label="Pipeline" value=${task.payload} /><//>`
    }
    ${may('audit:read') && html`<${Revisions} task=${task} version=${task.revision} query=${query} done=${restored} />`}`;
}
