// The log of a run or of one of its steps: by attempt, searched and downloaded. Lines arrive as they are written.

import { html, useState } from '../../preact.js';
import { count, counted } from '../../times.js';
import { Button, Json, Nothing } from '../../ui/elements.js';
import { Field } from '../../ui/field.js';
import { Section } from '../../ui/layout.js';
import { Instant } from '../../ui/names.js';
import { saveText } from './saving.js';

/** Lines that are drawn: more would make the page slow. The download has all. */
const MAX_LINES = 1000;

/** Whether a line is of a step, or of an item of it. */
const isOf = (step) => (line) => line.step === step || line.step.startsWith(`${step}[`);

/** The attempt that wrote a line: the last one that had begun by then. */
function attemptOf({ attempts }, { at }) {
  const began = attempts.findLast(({ started_at: from }) => from <= at);
  return (began ?? attempts[0])?.attempt ?? 0;
}

/** @param {string} step whose lines are shown; `''`: all */
export function RunLog({ run, step }) {
  const [find, setFind] = useState('');
  const [attempt, setAttempt] = useState('');
  const lines = run.log
    .filter(step === '' ? () => true : isOf(step))
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
      <${LogLines} lines=${found} isFiltered=${found.length < lines.length} hasStep=${step === ''}
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

/** A line as it is searched and downloaded. */
function textOf({ at, level, message, step, data, attempt }) {
  const more = data === undefined ? '' : ` ${JSON.stringify(data)}`;
  return `${at} ${level} attempt=${attempt} ${step}: ${message}${more}`;
}
