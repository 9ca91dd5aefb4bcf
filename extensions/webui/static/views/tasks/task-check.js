// Checks a task while it is typed, as saving it would, and says what saving would change.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { useData, useDebounced } from '../../data.js';
import { Changes } from '../../ui/changes.js';
import { Section } from '../../ui/layout.js';
import { InstantAndDistance } from '../../ui/names.js';
import { toolsNamedIn } from './completion.js';
import { bodyOf } from './task-fields.js';

const DELAY = 250;

/** Checks the values of a form. @returns `{valid, issues, warnings, changes, …}` */
export const checkTask = (task, body, signal) =>
  // Uses the page's own endpoint. With the API's, the browser would log an error for each half-typed value.
  call('POST', 'ext/webui/api/check', {
    body: { ...(task === null ? {} : { task_id: task.id }), ...body },
    signal,
  });

/**
 * The faults of the payload while it is typed, and warnings about it.
 * @returns `{findings, faults}`: sentences about likely mistakes, and about faults that the service will reject
 */
export function useCheck(task, initial, values) {
  const asked = useDebounced(payloadAsked(task, initial, values), DELAY);
  const { data } = useData(
    async (signal) => {
      if (asked === null) return null;
      const { body, only } = JSON.parse(asked);
      const checked = await checkTask(task, body, signal);
      return only === undefined ? checked : { warnings: warningsOf(checked, only) };
    },
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

/**
 * What to check, as a string: `{body, only}`; null for nothing. Only faults of the pipeline matter here. While the JSON
 * is incomplete, the body has only the names of the tools, and only warnings about these fields matter.
 */
function payloadAsked(task, initial, values) {
  const fixed = task === null ? { title: '-', description: '-', schedule_kind: 'event' } : {};
  try {
    const { payload, params_schema } = bodyOf(values, task && initial);
    if (task !== null && payload === undefined) return null;
    return JSON.stringify({ body: { ...fixed, payload, params_schema } });
  } catch {
    // A field is not valid JSON yet, and says so itself.
    const named = toolsNamedIn(values.payload);
    if (named.length === 0) return null;
    const only = named.map(({ path }) => ['payload', ...path].join('.'));
    return JSON.stringify({ body: { ...fixed, payload: payloadWith(named) }, only });
  }
}

/** A payload of steps that only name their tools. Other steps use the same tool as the first. */
function payloadWith(named) {
  const pipeline = [];
  for (const { path, tool } of named) {
    const [, step, , part] = path;
    if (part === undefined) pipeline[step] = { uses: tool };
    else ((pipeline[step] ??= { parallel: [] }).parallel ??= [])[part] = { uses: tool };
  }
  const filled = (steps) => Array.from(steps, (each) => each ?? { uses: named[0].tool });
  const whole = ({ parallel, ...step }) => (parallel ? { parallel: filled(parallel) } : step);
  return { pipeline: filled(pipeline).map(whole) };
}

const warningsOf = ({ warnings = [] }, fields) =>
  warnings.filter((each) => fields.some((field) => each.startsWith(`${field}: `)));

/** Says what saving would do. @param result of {@link checkTask} */
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
    ${changes.length > 0 ? html`<div class="diff" tabindex="0" role="region" aria-label="What would change"><${Changes} of=${changes} /></div>` : html`<p class="soft">Saving would change nothing.</p>`}
    <ul class="findings">${warnings.map((each) => html`<li class="fault">${each}</li>`)}</ul>
  <//>`;
}
