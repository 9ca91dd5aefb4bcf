// Checks a task while it is typed, as saving would, and says what saving would change.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { useData, useDebounced } from '../../data.js';
import { Changes } from '../../ui/changes.js';
import { Section } from '../../ui/layout.js';
import { InstantAndDistance } from '../../ui/names.js';
import { bodyOf } from './task-fields.js';

const DELAY = 250;

/** Checks what a form holds. @returns `{valid, issues, warnings, changes, …}` */
export const checkTask = (task, body, signal) =>
  // The page's own endpoint: a browser would write each refusal of what is half-typed into its console.
  call('POST', 'ext/webui/api/check', {
    body: { ...(task === null ? {} : { task_id: task.id }), ...body },
    signal,
  });

/**
 * What is wrong with the payload while it is typed, and warnings about it.
 * @returns `{findings, faults}`: sentences about likely mistakes, and about what will be rejected
 */
export function useCheck(task, initial, values) {
  const asked = useDebounced(payloadAsked(task, initial, values), DELAY);
  const { data } = useData(
    (signal) => (asked === null ? null : checkTask(task, JSON.parse(asked), signal)),
    [asked],
  );
  if (!data) return { findings: [], faults: [] };
  const { warnings = [], issues = [] } = data;
  return {
    findings: warnings.filter((each) => each.startsWith('payload')),
    faults: issues
      .filter(({ field }) => field.startsWith('payload'))
      .map(({ field, issue }) => `${field}: ${issue}`),
  };
}

/** The body to check, as a string; null while its JSON is not complete. Only the pipeline's own faults are of interest. */
function payloadAsked(task, initial, values) {
  try {
    const { payload, params_schema } = bodyOf(values, task && initial);
    const fixed = task === null ? { title: '-', description: '-', schedule_kind: 'event' } : {};
    if (task !== null && payload === undefined) return null;
    return JSON.stringify({ ...fixed, payload, params_schema });
  } catch {
    // It is no JSON yet: the field says so.
    return null;
  }
}

/** What saving would do. @param result of {@link checkTask} */
export function DryRun({ result }) {
  const { valid, message, issues = [], warnings = [], changes = [], next_fire_at: next } = result;
  if (!valid) {
    return html`<${Section} title="Dry run: it would be rejected">
      <ul class="findings">
        ${issues.length === 0 && html`<li class="fault">${message}</li>`}
        ${issues.map(({ field, issue }) => html`<li class="fault"><code>${field}</code> ${issue}</li>`)}
      </ul>
    <//>`;
  }
  return html`<${Section} title="Dry run: it can be saved">
    <p>${result.schedule_text}${next && html`; next <${InstantAndDistance} at=${next} />`}</p>
    ${changes.length > 0 ? html`<div class="diff" tabindex="0" role="region" aria-label="What would change"><${Changes} of=${changes} /></div>` : html`<p class="soft">Nothing that it has would change.</p>`}
    <ul class="findings">${warnings.map((each) => html`<li class="fault">${each}</li>`)}</ul>
  <//>`;
}
