// Times, tasks, runs and agents as they are shown everywhere.

import { html, useRef } from '../preact.js';
import { isTextSelected } from '../data.js';
import { agentName, learnAgent, titleOf } from '../names.js';
import { useStore } from '../store.js';
import { ago, dateText, duration, fullText } from '../times.js';
import { shownZone } from '../zones.js';
import { Link } from './elements.js';

/**
 * An instant by its distance from now, which is kept up to date; the exact time on hover. A dash for null.
 * @param past shown once the instant has passed, in place of how long ago it was
 */
export const When = ({ at, past }) => (at ? html`<${RelativeTime} at=${at} past=${past} />` : '–');

function RelativeTime({ at, past }) {
  const isExact = useStore((state) => state.isExact);
  const text = useTimeText(`${at} ${past} ${isExact} ${shownZone()}`, () => {
    if (isExact) return dateText(at);
    return past !== undefined && Date.parse(at) < Date.now() ? past : ago(at);
  });
  return html`<time datetime=${at} title=${fullText(at)}>${text}</time>`;
}

/** An instant; its distance from now on hover. */
export const Instant = ({ at }) =>
  at
    ? html`<time datetime=${at} title=${`${ago(at)} · ${fullText(at)}`}>${dateText(at)}</time>`
    : '–';

/** Both. */
export const InstantAndDistance = ({ at, past }) =>
  at
    ? html`<${Instant} at=${at} /> <span class="soft"><${When} at=${at} past=${past} /></span>`
    : '–';

/** How long ago something started, kept up to date. */
export const Running = ({ since }) =>
  useTimeText(since, () => duration(Date.now() - Date.parse(since)));

/** A text that changes as time passes, but not while a person selects text. @param key of all else that it depends on */
function useTimeText(key, write) {
  const last = useRef(null);
  return useStore(() => {
    if (last.current?.key !== key || !isTextSelected()) last.current = { key, text: write() };
    return last.current.text;
  });
}

/** A link to a task, by its title. */
export const TaskLink = ({ id }) => html`<${Link} to="tasks/${id}" kind="name">${titleOf(id)}<//>`;

/** A link to a run, by the first characters of its id. */
export const RunLink = ({ id, prefix = '' }) =>
  html`<${Link} to="runs/${id}">${prefix}${id.slice(0, 8)}<//>`;

/** A link to a stream, at one of its revisions. */
export const StreamLink = ({ stream, at, kind, children }) => {
  const to = `system/streams/${encodeURIComponent(stream)}`;
  return html`<${Link} to=${at === undefined ? to : `${to}?at=${at}`} kind=${kind}>${children}<//>`;
};

/** A link to an agent, by its name. */
export const AgentLink = ({ id }) =>
  html`<${Link} to="agents/${id}" kind="name">${useStore(() => agentName(id))}<//>`;

/** Who did something: an agent by name, or the service. @param name if it is known anyway */
export function Actor({ id, name }) {
  learnAgent(id, name);
  const shown = useStore(() => agentName(id));
  return id === 'service'
    ? html`<span class="soft">service</span>`
    : html`<span title=${id}>${shown}</span>`;
}
