// The audit: commands with their actors, and refusals. New entries appear live.

import { html } from '../../preact.js';
import { useLive } from '../../live.js';
import { agentIdOf, agentName, agentNames, isUuid } from '../../names.js';
import { useStore } from '../../store.js';
import { isoOf } from '../../times.js';
import { Nothing } from '../../ui/elements.js';
import { Heading } from '../../ui/layout.js';
import { Filters, filtersIn, useFilters } from '../../ui/list.js';
import { Updates, usePause } from '../../ui/updates.js';
import { AuditEntries } from './audit-entries.js';
import { useEntries } from './audit-data.js';

const outcomes = {
  '': 'all',
  CommandRefused: 'refused commands',
  done: 'done',
  failed: 'failed',
  refused: 'refused',
};
const time = 'datetime-local';
const fields = [
  { name: 'outcome', label: 'Outcome', options: outcomes },
  { name: 'actor', label: 'Who (name or ID)', list: 'actors' },
  { name: 'type', label: 'Type of event' },
  { name: 'stream', label: 'Stream' },
  { name: 'source', label: 'From address' },
  { name: 'correlation_id', label: 'Request' },
  { name: 'search', label: 'Search' },
  { name: 'from', label: 'From', type: time },
  { name: 'to', label: 'To', type: time },
];

/** Refused commands are a type of event, and are offered among the outcomes. */
function fieldsIn(query) {
  const filters = filtersIn(query, fields);
  const isRefused = filters.type === 'CommandRefused';
  return isRefused ? { ...filters, outcome: filters.type, type: '' } : filters;
}

const withType = ({ outcome, ...filters }) =>
  outcome === 'CommandRefused' ? { ...filters, type: outcome } : { ...filters, outcome };

/** The names that the filter suggests. */
function Actors() {
  const names = useStore(() => agentNames().join('\n'));
  return html`<datalist id="actors">
    ${['service', ...names.split('\n')].map((name) => html`<option key=${name} value=${name}></option>`)}
  </datalist>`;
}

/** The fields of the filter. An agent that was chosen by its ID is shown by name. */
const fieldsFor = (who, actor) =>
  fields.map((field) =>
    field.name === 'actor' && isUuid(who) ? { ...field, hint: agentName(actor) } : field,
  );

export function AuditView({ query: address }) {
  const list = useFilters('audit', fieldsIn(address), withType);
  const { from, to, actor: who, ...others } = withType(list.asked.filters);
  // Names may become known later than the view.
  const actor = useStore(() => agentIdOf(who));
  const isUnknown = actor === null;
  const filters = { ...others, actor: actor ?? '' };
  const query = { ...filters, from: isoOf(from), to: isoOf(to) };
  const { entries, shown, readOlder } = useEntries(query);
  // The live stream has neither past entries nor the service's own actions.
  const isRefused = to !== '' || filters.actor === 'service' || isUnknown;
  const { isPaused, pause } = usePause();
  const path = entries.isRead && !isRefused && !isPaused ? 'audit/live' : null;
  const live = useLive(path, entries.take, { query: filters, deps: [entries] });
  const updates = {
    liveness: isRefused ? 'refused' : isPaused ? 'paused' : entries.error !== null ? 'lost' : live,
    reload: entries.read,
    pause: (isNow) => {
      // Entries that arrive during the pause are read after it.
      if (isNow) entries.restart();
      pause(isNow);
    },
  };
  return html`<${Heading} title="Audit" beside=${html`<${Updates} of=${updates} />`} />
    <${Filters} list=${list} fields=${fieldsFor(who, actor)} />
    <${Actors} />
    <div class="results" aria-live="polite">
      ${isUnknown && html`<${Nothing} text="No agent, or more than one, is called “${who}”." />`}
      ${!isUnknown && shown !== null && html`<${AuditEntries} entries=${shown} readOlder=${readOlder} />`}
    </div>`;
}
