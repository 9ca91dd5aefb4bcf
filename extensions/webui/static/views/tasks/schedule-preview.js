// The next fires of a schedule while it is typed.

import { html, useEffect } from '../../preact.js';
import { call } from '../../client.js';
import { useData, useDebounced } from '../../data.js';
import { Instant, When } from '../../ui/names.js';
import { shownZone, wallTime } from '../../zones.js';

const DELAY = 150;

/** The fields that a preview depends on. Errors in them are shown at the field. */
const previewed = ['schedule_kind', 'schedule_expr', 'timezone', 'starts_at', 'ends_at'];

/**
 * Previews the schedule when nothing has been typed for a while, and sets the faults of its fields.
 * @param task null for a new one; until its schedule is changed, its own fires are shown: a rule without DTSTART
 *   starts when it was set
 */
export function usePreview(task, initial, values, setFaults) {
  const schedule = previewed.map((name) => [name, values[name].trim()]);
  const isUnchanged = task !== null && previewed.every((name) => values[name] === initial[name]);
  const question = isUnchanged
    ? { task_id: task.id }
    : { timezone: 'UTC', ...Object.fromEntries(schedule.filter(([, value]) => value !== '')) };
  const asked = useDebounced(JSON.stringify({ ...question, count: 5 }), DELAY);
  const preview = useData(
    // The page's own endpoint: a browser would write each refusal of a half-typed schedule into its console.
    (signal) => call('POST', 'ext/webui/api/preview', { body: JSON.parse(asked), signal }),
    [asked],
  );
  useEffect(() => {
    const { valid, issues } = preview.data ?? { valid: true };
    const faultOf = (name) => (valid ? '' : issues.find(({ field }) => field === name)?.issue);
    const faults = Object.fromEntries(previewed.map((name) => [name, faultOf(name)]));
    setFaults((before) => ({ ...before, ...faults }));
  }, [preview.data]);
  return preview;
}

export function NextFires({ preview: { data, error } }) {
  let content = null;
  if (error !== null) content = html`<p class="soft">${error.message}</p>`;
  else if (data?.valid) content = html`<${Fires} ...${data} />`;
  else if (data !== undefined) {
    const isAtField = data.issues.some(({ field }) => previewed.includes(field));
    content = html`<p class="soft">${isAtField ? 'None: see the field.' : data.message}</p>`;
  }
  return html`<div aria-live="polite" id="next-fires">${content}</div>`;
}

const Fires = ({ schedule_text: words, fires, warnings }) =>
  html`<p>${words}</p>
    <ol class="list">${fires.map((each) => html`<${Fire} key=${each.at} ...${each} />`)}</ol>
    ${warnings.map((warning) => html`<p class="hint">${warning}</p>`)}`;

/** A fire in the time zone of the schedule, and in that of the page if its time differs. */
function Fire({ at, local, note }) {
  const isHere = wallTime(Date.parse(at)) === local.slice(0, 19);
  return html`<li>
    <code>${local.slice(0, 19).replace('T', ' ')}</code>
    <span class="soft">
      ${` ${local.slice(19)} `}${!isHere && html`(<${Instant} at=${at} /> ${shownZone()}) `}<${When} at=${at} />
    </span>
    ${note && html`<p class="hint">${note}</p>`}
  </li>`;
}
