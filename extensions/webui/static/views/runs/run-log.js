// The log of a run or of one of its steps, updated live. It can be filtered by attempt, searched and downloaded.

import { html, useEffect, useState } from '../../preact.js';
import { count, counted } from '../../times.js';
import { Button, Json, Nothing } from '../../ui/elements.js';
import { Field } from '../../ui/field.js';
import { Section } from '../../ui/layout.js';
import { Instant } from '../../ui/names.js';
import { saveText } from './files-and-clipboard.js';
import { isOwn } from './run-rows.js';

/** The most lines that are drawn, as more would make the page slow. The download has all of them. */
const MAX_LINES = 1000;
/** The delay between the last key and putting the search into the address, in milliseconds. */
const TYPING_DELAY = 200;

/** The steps of a parallel group; none for another step. */
const partsOf = ({ plan }, step) =>
  (plan ?? []).filter(({ group }) => group === step).map((part) => part.step);

/** Whether a line belongs to one of these steps or to one of their items. */
const isOf = (steps) => (line) =>
  steps.some((step) => line.step === step || line.step.startsWith(`${step}[`));

/**
 * The attempt that wrote a line: that of the execution of its step at that time. The clocks of workers differ, so the
 * start of an attempt says it only for a step that has not ended.
 */
function attemptOf(run, { at, step }) {
  const end = run.steps.find(
    (each) =>
      each.step === step && each.started_at <= at && at <= each.finished_at && isOwn(run, each),
  );
  if (end !== undefined) return end.attempt;
  const began = run.attempts.findLast(({ started_at: from }) => from <= at);
  return (began ?? run.attempts[0])?.attempt ?? 0;
}

/**
 * @param {object} address of the page: `step`, whose lines are shown (`''`: all steps), and the filters `find` and
 *   `attempt`
 */
export function RunLog({ run, address }) {
  const { step, attempt } = address;
  const [find, setFind] = useState(address.find);
  const setAttempt = (value) => address.go({ attempt: value || null });
  useEffect(() => {
    if (find.trim() === address.find) return undefined;
    const timer = setTimeout(() => address.go({ find: find.trim() || null }), TYPING_DELAY);
    return () => clearTimeout(timer);
  }, [find]);
  const parts = partsOf(run, step);
  const lines = run.log
    .filter(step === '' ? () => true : isOf([step, ...parts]))
    .map((line) => ({ ...line, attempt: attemptOf(run, line) }));
  const wanted = find.trim().toLowerCase();
  const found = lines.filter(
    (line) =>
      (attempt === '' || String(line.attempt) === attempt) &&
      (wanted === '' || textOf(line).toLowerCase().includes(wanted)),
  );
  const name = step === '' ? run.id : `${run.id}-${step}`;
  const save = () => saveText(`${name}.log`, found.map(textOf).join('\n') + '\n');
  const aside = html`<div class="row">
    <span class="soft" aria-live="polite">${
      found.length === lines.length
        ? counted(lines.length, 'line')
        : `${count(found.length)} of ${counted(lines.length, 'line')}`
    }</span>
    ${found.length > 0 && html`<${Button} kind="small" label="Download the log" onClick=${save}>Download<//>`}
  </div>`;
  const attempts = run.attempts.map((each) => String(each.attempt));
  return html`<${Section} title="Log" aside=${aside}>
    ${
      lines.length > 0 &&
      html`<div class="row filters">
        <${Field} label="Search the log" type="search" value=${find} onInput=${setFind} />
        ${
          attempts.length > 1 &&
          html`<${Field} label="Attempt" options=${['', ...attempts]} value=${attempt} onInput=${setAttempt} />`
        }
      </div>`
    }
    <div role="log" aria-label="Log" tabindex="0" class="log-lines">
      <${LogLines} lines=${found} isFiltered=${found.length < lines.length} hasStep=${step === '' || parts.length > 0}
        hasAttempt=${attempts.length > 1} />
    </div>
  <//>`;
}

function LogLines({ lines, isFiltered, hasStep, hasAttempt }) {
  if (lines.length === 0) {
    return html`<${Nothing} text=${isFiltered ? 'No line matches.' : 'No lines.'} />`;
  }
  const shown = lines.slice(-MAX_LINES);
  const left = lines.length - shown.length;
  return html`${left > 0 && html`<p class="hint">${counted(left, 'earlier line')} left out: search, or download.</p>`}
    <ul class="list log">
      ${shown.map(
        ({ at, level, message, step, data, attempt }) => html`<li>
          <${Instant} at=${at} /><span class="level ${level}">${level}</span>
          ${hasAttempt && html`<span class="soft">attempt ${attempt}</span>`}
          ${hasStep && html`<code>${step}</code>`}
          <span class="message">${message}</span>
          ${data !== undefined && html`<${Json} label="Data" value=${data} />`}
        </li>`,
      )}
    </ul>`;
}

/** A line as plain text, for the search and the download. */
function textOf({ at, level, message, step, data, attempt }) {
  const more = data === undefined ? '' : ` ${JSON.stringify(data)}`;
  return `${at} ${level} attempt=${attempt} ${step}: ${message}${more}`;
}
