// The payload of an event, and the runs that it caused with their states.

import { html, useState } from '../../preact.js';
import { call, may } from '../../client.js';
import { writeJson } from '../../json.js';
import { counted } from '../../times.js';
import { Button, Json, State } from '../../ui/elements.js';
import { RunLink, TaskLink } from '../../ui/names.js';

/** How many runs of an event are shown before a person asks for more. */
const MAX_SHOWN_RUNS = 3;
/** Runs in one request. */
const MAX_IDS = 100;
/** How many characters of a payload a row shows. */
const PREVIEW = 80;

/** The states of runs by id. Each page reads its own. */
const states = new Map();
const MAX_STATES = 5000;

/** Reads the states of the runs that are shown. */
export async function readStates(events, signal) {
  const ids = events.flatMap(({ runs }) =>
    runs.slice(0, MAX_SHOWN_RUNS).map(({ run_id: id }) => id),
  );
  await readStatesOf(ids, signal);
}

/** The same for runs by their ids. */
export async function readStatesOf(ids, signal) {
  if (!may('runs:read') || ids.length === 0) return;
  if (states.size > MAX_STATES) states.clear();
  for (let from = 0; from < ids.length; from += MAX_IDS) {
    const query = { ids: ids.slice(from, from + MAX_IDS).join(',') };
    const { runs } = await call('GET', 'ext/webui/api/states', { query, signal });
    for (const { id, state } of runs) states.set(id, state);
  }
}

/** The state of a run when it was last read; undefined if it is not known. */
export const stateOf = (id) => states.get(id);

/** The start of the payload. When opened: all of it, with the ids. */
export function EventDetails({ event }) {
  const { payload, event_id: id, stream_id: stream, namespace } = event;
  const text = writeJson(payload);
  const preview = text.length > PREVIEW ? `${text.slice(0, PREVIEW)} …` : text;
  return html`<details>
    <summary><code>${preview}</code></summary>
    <${Json} label="Payload" value=${payload} />
    <p class="hint">Event <code>${id}</code>, number <code>${stream}</code>${namespace && `, namespace ${namespace}`}</p>
  </details>`;
}

export function EventRuns({ event: { triggered, runs } }) {
  const [isOpen, setOpen] = useState(false);
  if (triggered === 0) return html`<span class="soft">no task listened</span>`;
  const shown = isOpen ? runs : runs.slice(0, MAX_SHOWN_RUNS);
  const open = async () => {
    await readStatesOf(runs.map(({ run_id: id }) => id));
    setOpen(true);
  };
  const more = triggered - shown.length;
  return html`<ul class="plain">
      ${shown.map((run) => html`<li key=${run.run_id}><${CausedRun} ...${run} /></li>`)}
    </ul>
    ${!isOpen && more > 0 && html`<${Button} kind="small" onClick=${open}>${more} more<//>`}
    ${isOpen && more > 0 && html`<span class="soft">and ${counted(more, 'run')} more</span>`}`;
}

function CausedRun({ task_id: task, run_id: run }) {
  const state = stateOf(run);
  return html`<${RunLink} id=${run} /> ${state && html`<${State} of=${state} />`} <${TaskLink} id=${task} />`;
}
