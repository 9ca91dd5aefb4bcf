// Sets the quotas of a namespace. An admin sets its bounds; the namespace's own administrator may lower them.

import { html } from '../../preact.js';
import { call, callFully, may, reasonHeader } from '../../client.js';
import { useData } from '../../data.js';
import { notify } from '../../store.js';
import { count } from '../../times.js';
import { spaced } from '../../ui/elements.js';
import { Field } from '../../ui/field.js';
import { Form, ReasonField, useForm } from '../../ui/form.js';
import { Heading, LoadedView } from '../../ui/layout.js';

const hints = {
  weight: 'its share of run starts relative to other namespaces; default 1',
  tasks: 'active and paused',
  agents: 'registered',
  topics: 'with at least one published event',
  events: 'in the log',
  artifact_bytes: 'of the results of runs',
  runs_per_minute: 'that start',
  payload_bytes_per_minute: 'of events, and of the params of runs',
};
const names = Object.keys(hints);

export function QuotaForm({ name }) {
  const path = `namespaces/${encodeURIComponent(name)}`;
  const found = useData((signal) => callFully('GET', path, { signal }), []);
  return html`<${LoadedView} of=${found}>
    ${({ body, headers }) => html`<${Fields} namespace=${body} etag=${headers.get('etag')} />`}
  <//>`;
}

function Fields({ namespace, etag }) {
  const { name, quota_bounds: bounds, own_quotas: own } = namespace;
  const isBounding = may('admin');
  const present = (isBounding ? bounds : own) ?? {};
  const initial = Object.fromEntries(names.map((each) => [each, String(present[each] ?? '')]));
  const form = useForm({ ...initial, reason: '' }, async (values) => {
    const headers = { 'If-Match': etag, ...reasonHeader(values.reason.trim()) };
    await call('PUT', `namespaces/${name}`, { body: { quotas: quotasIn(values) }, headers });
    notify(`The quotas of ${name} are set.`);
    location.hash = `#/namespaces/${name}`;
  });
  const hintOf = (quota) =>
    isBounding || bounds[quota] === undefined
      ? hints[quota]
      : `${hints[quota]}; at most ${count(bounds[quota])}`;
  return html`<${Heading} title="Quotas of ${name}" />
    <${Form} form=${form} action="Save" back="namespaces/${name}">
      <p class="soft">An empty field sets no ${isBounding ? 'limit here; the service’s settings may set one' : 'further limit'}.</p>
      <div class="pairs">
        ${names.map(
          (
            quota,
          ) => html`<${Field} key=${quota} label=${labelOf(quota)} type="number" min="0" step="1"
            hint=${hintOf(quota)} ...${form.field(quota)} />`,
        )}
      </div>
      <${ReasonField} form=${form} />
    <//>`;
}

const labelOf = (quota) => spaced(quota[0].toUpperCase() + quota.slice(1));

/** The quotas to send. An issue names its quota as the service's response does. */
const quotasIn = (values) =>
  Object.fromEntries(
    names.filter((each) => values[each].trim() !== '').map((each) => [each, Number(values[each])]),
  );
