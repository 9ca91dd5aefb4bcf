// The right pane of a run: the error, the input, the output and the log of the chosen step, or of the whole run.

import { html } from '../../preact.js';
import { duration } from '../../times.js';
import { Json, Lines, Link, Nothing, State, Table } from '../../ui/elements.js';
import { Facts, Section } from '../../ui/layout.js';
import { Instant, RunLink } from '../../ui/names.js';
import { RunLog } from './run-log.js';
import { isOwn } from './run-rows.js';
import { Awaited, openWaits } from './run-waits.js';

/**
 * @param {object} run
 * @param {object} address of the page: its `step` (`''`: the whole run), and the search of its log
 * @param {object | undefined} explanation of the run with the input of the step; undefined while it is not known
 */
export const Pane = ({ run, address, explanation, children }) =>
  address.step === ''
    ? html`<${WholeRun} run=${run} address=${address} />`
    : html`<${Step} run=${run} address=${address} explanation=${explanation}>${children}<//>`;

function WholeRun({ run, address }) {
  const hasParams = Object.keys(run.params ?? {}).length > 0;
  return html`
    ${run.error !== null && html`<${ErrorSection} error=${run.error} />`}
    ${hasParams && html`<${Section} title="Params"><${Json} label="Params" value=${run.params} /><//>`}
    ${
      run.event &&
      html`<${Section} title="Event" aside=${html`<${Link} to="events/${run.event.id}"><code>${run.event.topic}</code><//>`}>
        <${Json} label="Event" value=${run.event.payload} />
      <//>`
    }
    <${Section} title="Output">
      ${run.output === null ? html`<${Nothing} text="None." />` : html`<${Json} label="Output" value=${run.output} />`}
    <//>
    <${RunLog} key="log" run=${run} address=${address} />`;
}

const ErrorSection = ({ error, label = 'Error' }) =>
  html`<${Section} title="Error" kind="error"><${Lines} label=${label}>${error}<//><//>`;

function Step({ run, address, explanation, children }) {
  const { step } = address;
  const planned = run.plan?.find((each) => each.step === step);
  const ends = run.steps.filter((each) => each.step === step);
  const end = ends.at(-1);
  if (planned === undefined && end === undefined) {
    return html`<${Section} title=${step}><${Nothing} text="This run has no such step." /><//>`;
  }
  const isReused = planned?.state === 'reused' || (end !== undefined && !isOwn(run, end));
  const isOver = run.finished_at !== null;
  const pending = isOver ? 'did_not_end' : 'pending';
  const state = planned?.state ?? end.status;
  const shown = state === 'pending' ? pending : state;
  return html`
    <${Section} title=${step} aside=${html`<${State} of=${shown} />`}>
      <${StepFacts} run=${run} planned=${planned} end=${end} isReused=${isReused}
        times=${explanation?.step_times.find((each) => each.step === step)} />
      ${children}
    <//>
    ${(end?.error ?? null) !== null && html`<${ErrorSection} error=${end.error} label="Error of ${step}" />`}
    ${planned?.uses !== null && html`<${Input} step=${step} input=${explanation?.input} />`}
    ${
      end !== undefined &&
      end.error === null &&
      html`<${Section} title="Output"><${Json} label="Result of ${step}" value=${end.result} /><//>`
    }
    ${ends.length > 1 && html`<${Tries} step=${step} ends=${ends} />`}
    <${RunLog} key="log ${step}" run=${run} address=${address} />`;
}

function StepFacts({ run, planned, end, isReused, times }) {
  const wait = openWaits(run).find(({ step }) => step === planned?.step);
  const took = end === undefined ? null : Date.parse(end.finished_at) - Date.parse(end.started_at);
  const p95 = times?.p95_seconds ?? null;
  const facts = [
    planned?.uses && ['Tool', html`<code>${planned.uses}</code>`],
    (planned?.group ?? null) !== null && ['Group', html`<code>${planned.group}</code>`],
    isReused &&
      run.retry_of !== null && ['Reused from', html`run <${RunLink} id=${run.retry_of} />`],
    wait && ['Waits for', html`<${Awaited} wait=${wait} />`],
    wait && ['Waits since', html`<${Instant} at=${wait.since} />`],
    wait && ['Waits at most until', html`<${Instant} at=${wait.until} />`],
    end && ['From', html`<${Instant} at=${end.started_at} />`],
    end && ['To', html`<${Instant} at=${end.finished_at} />`],
    end && [
      'Took',
      html`${duration(took)} ${times?.slow && html`<${State} of="slow" tone="wait" />`}`,
    ],
    p95 !== null && [
      'Usually',
      `up to ${duration(p95 * 1000)} (p95), ${duration(times.p50_seconds * 1000)} (median) of ${times.measured}`,
    ],
    end && !isReused && ['Attempt', end.attempt],
  ];
  return html`<${Facts} of=${facts} />`;
}

/** @param input undefined while it is being read; null if it is unknown */
function Input({ step, input }) {
  if (input === undefined) return null;
  if (input !== null && input.step !== step) return null;
  const hint =
    input !== null && input.exact
      ? html`<span class="soft" title="It matches the hash that the run recorded.">verified by its hash</span>`
      : null;
  return html`<${Section} title="Input" aside=${hint}>
    ${
      input === null
        ? html`<${Nothing} text="Unknown: its expressions cannot be evaluated now, or you may not see the task." />`
        : html`<${Json} label="Input of ${step}" value=${input.value} />`
    }
  <//>`;
}

const tryColumns = [
  ['Attempt', 'attempt', 'num'],
  ['Status', ({ status }) => html`<${State} of=${status} />`],
  [
    'Took',
    ({ started_at: from, finished_at: to }) => duration(Date.parse(to) - Date.parse(from)),
    'num',
  ],
  ['Error', 'error', 'grow'],
];
const Tries = ({ step, ends }) =>
  html`<${Section} title="Attempts of ${step}">
    <${Table} caption="Attempts of ${step}" columns=${tryColumns} items=${ends} rowKey="started_at" />
  <//>`;
