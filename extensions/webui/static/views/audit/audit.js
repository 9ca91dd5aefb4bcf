// The audit: commands with their actors, and refusals. New entries appear live.

import { html } from '../../preact.js';
import { LiveMark, useLive } from '../../live.js';
import { isoOf } from '../../times.js';
import { Heading } from '../../ui/layout.js';
import { Filters, filtersIn, useFilters } from '../../ui/list.js';
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
  { name: 'actor', label: 'Who (ID, or “service”)' },
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

export function AuditView({ query: address }) {
  const list = useFilters('audit', fieldsIn(address), withType);
  const { from, to, ...filters } = withType(list.asked.filters);
  const query = { ...filters, from: isoOf(from), to: isoOf(to) };
  const { entries, shown } = useEntries(query, list.asked);
  // Nothing is sent live of the past, nor of what the service does itself.
  const isRefused = to !== '' || filters.actor === 'service';
  const path = entries.isRead && !isRefused ? 'audit/live' : null;
  const live = useLive(path, entries.take, { query: filters, deps: [list.asked] });
  const mark = html`<${LiveMark} state=${isRefused ? 'refused' : live} />`;
  return html`<${Heading} title="Audit" beside=${mark} />
    <${Filters} list=${list} fields=${fields} />
    <div class="results" aria-live="polite">
      ${shown !== null && html`<${AuditEntries} entries=${shown} />`}
    </div>`;
}
