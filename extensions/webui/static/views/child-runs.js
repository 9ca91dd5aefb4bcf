// The runs for whose end steps of a run wait, or have waited.

import { html } from '../preact.js';
import { Table } from '../ui/elements.js';
import { Section } from '../ui/layout.js';
import { RunLink, TaskLink, When } from '../ui/names.js';

const columns = [
  ['Run', ({ run_id: id }) => html`<${RunLink} id=${id} />`],
  ['Task', ({ task_id: id }) => html`<${TaskLink} id=${id} />`],
  ['Step', ({ step }) => html`<code>${step}</code>`],
  ['Since', ({ since }) => html`<${When} at=${since} />`],
];

/** Left out for a run without any. @param events of the parent */
export function ChildRuns({ events }) {
  const runs = new Map();
  for (const { type, data } of events) {
    if (type !== 'RunStepSuspended' || data.waits_for.kind !== 'run') continue;
    const { step, since, waits_for: child } = data;
    runs.set(child.run_id, { ...child, step, since });
  }
  if (runs.size === 0) return null;
  return html`<${Section} title="Child runs">
    <${Table} caption="Child runs" columns=${columns} items=${[...runs.values()]} rowKey="run_id" />
  <//>`;
}
