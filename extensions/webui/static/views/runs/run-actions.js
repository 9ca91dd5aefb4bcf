// The actions on a run: retry, run again, cancel, copy.

import { html, useState } from '../../preact.js';
import { command } from '../../client.js';
import { parseTyped, writeJson } from '../../json.js';
import { notify } from '../../store.js';
import { AskButton } from '../../ui/dialog.js';
import { Button, Lines } from '../../ui/elements.js';
import { Section } from '../../ui/layout.js';
import { commandsOf } from './run-commands.js';
import { copyText } from './files-and-clipboard.js';

/** Replaces the values of secrets. */
const MASK = '***';

const open = ({ details }) => void (location.hash = `#/runs/${details.run_id}`);

/** The steps that a retry can start from: those that the run has reached, except items of `for_each`. */
const begunSteps = ({ plan }) =>
  (plan ?? [])
    .filter(({ step, state }) => state !== 'pending' && !step.endsWith(']'))
    .map(({ step }) => step);

/** The buttons of a run. @param task as it is now, or null if it is unknown */
export function RunActions({ run, task, canRetry, isOver, done }) {
  const retry = (from) => async () => {
    const answer = await command(`runs/${run.id}/retry`, { query: { from } });
    notify('A retry was requested.');
    open(answer);
  };
  const cancel = {
    title: 'Cancel this run?',
    text: 'It is asked to stop, and abandoned after ten seconds.',
    path: `runs/${run.id}/cancel`,
    done: 'The run was asked to stop.',
  };
  if (!isOver) {
    return html`<${AskButton} text="Cancel the run" kind="danger" dialog=${cancel} done=${done} />`;
  }
  if (canRetry) {
    return html`<${Button} kind="main-action" onClick=${retry('failed_step')}>Retry from the failed step<//>
      <${Button} onClick=${retry('start')}>Retry from the start<//>
      <${RetryButton} run=${run} text="Retry …" />`;
  }
  return (
    task !== null && task.status !== 'canceled' && html`<${RunAgain} run=${run} task=${task} />`
  );
}

const paramsField = (params) => ({
  name: 'params',
  label: 'Params (JSON)',
  type: 'textarea',
  rows: 6,
  value: writeJson(params ?? {}, 2),
  hint: 'Only params that you change are sent; values of secrets are hidden.',
});

/** Retries a failed run from a chosen step, optionally with other params. @param {string} [step] chosen at first */
export function RetryButton({ run, text, kind, step }) {
  const starts = Object.fromEntries(
    begunSteps(run).map((each) => [`step ${each}`, `step ${each}`]),
  );
  const from = { failed_step: 'the failed step', start: 'the start', ...starts };
  const value = step !== undefined && `step ${step}` in starts ? `step ${step}` : 'failed_step';
  const dialog = {
    title: 'Retry this run',
    text: 'All steps that do not come after the chosen one keep their results, even if you change the params.',
    action: 'Retry',
    fields: [{ name: 'from', label: 'From', options: from, value }, paramsField(run.params)],
    act: async ({ reason, from: chosen, params }) => {
      const changed = changedParams(run.params ?? {}, params);
      const isStep = chosen.startsWith('step ');
      const body = { ...(isStep ? { step: chosen.slice('step '.length) } : {}), ...changed };
      const query = { from: isStep ? 'failed_step' : chosen };
      open(await command(`runs/${run.id}/retry`, { reason, query, body }));
    },
    done: 'A retry was requested.',
  };
  return html`<${AskButton} text=${text} kind=${kind} dialog=${dialog} />`;
}

function RunAgain({ run, task }) {
  const dialog = {
    title: 'Run the task again',
    text: 'Starts a new run of the task’s present definition.',
    action: 'Run',
    fields: [paramsField(run.params)],
    act: async ({ reason, params }) => {
      const changed = changedParams(task.payload?.params ?? {}, params);
      open(await command(`tasks/${task.id}/run_now`, { reason, body: changed }));
    },
    done: 'A run was requested.',
  };
  return html`<${AskButton} text="Run again …" dialog=${dialog} />`;
}

/** The params that were changed, as the body of a request. @throws Error unless they are a JSON object */
function changedParams(before, text) {
  let typed;
  try {
    typed = text === '' ? {} : parseTyped(text);
  } catch (error) {
    throw new Error(`Params: ${error.message}`, { cause: error });
  }
  if (typed === null || typeof typed !== 'object' || Array.isArray(typed)) {
    throw new Error('Params must be a JSON object, such as {"limit": 5}.');
  }
  const changed = Object.entries(typed).filter(
    ([key, value]) =>
      writeJson(value) !== writeJson(before[key]) && !writeJson(value).includes(MASK),
  );
  return changed.length === 0 ? {} : { params: Object.fromEntries(changed) };
}

/** A button that shows the run's commands for a terminal. */
export function CopyButton({ run, task }) {
  const [isOpen, setOpen] = useState(false);
  const params = ownParams(run, task);
  return html`<button type="button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>Copy as …</button>
    ${
      isOpen &&
      html`<div class="commands"><${Section} title="Commands for a terminal">
        <p class="hint">curl sends a token in $SVC_TOKEN; svc finds its own credentials.</p>
        ${commandsOf(run, params).map(
          ({ name, curl, svc }) => html`<h3>${name}</h3>
            <${Copied} name="${name}: curl" label="Copy as curl" text=${curl} />
            <${Copied} name="${name}: svc" label="Copy as svc" text=${svc} />`,
        )}
      <//></div>`
    }`;
}

const Copied = ({ name, label, text }) =>
  html`<div class="copied">
    <${Lines} label=${name}>${text}<//>
    <${Button} kind="small" label="${label}: ${name}" onClick=${() => copyText(text)}>${label}<//>
  </div>`;

/** The params that differ from the task's defaults, if those are known. Params that hide a secret are left out. */
function ownParams({ params }, task) {
  const defaults = task?.payload?.params ?? {};
  return Object.fromEntries(
    Object.entries(params ?? {}).filter(
      ([key, value]) =>
        writeJson(value) !== writeJson(defaults[key]) && !writeJson(value).includes(MASK),
    ),
  );
}
