// The commands of a task, as buttons.

import { html } from '../../preact.js';
import { command, mayChange } from '../../client.js';
import { maySee } from '../../routes.js';
import { notify } from '../../store.js';
import { counted, inZone } from '../../times.js';
import { AskButton } from '../../ui/dialog.js';
import { Button } from '../../ui/elements.js';
import { paramFields, paramsIn } from '../runs/run-params.js';

const missed = { skip: 'none: continue with the next one', latest: 'the latest', all: 'all' };
const missedField = {
  name: 'missed',
  label: 'Missed fires to run',
  value: 'skip',
  options: missed,
};
const delays = {
  600: '10 minutes',
  3600: 'an hour',
  14400: '4 hours',
  86400: 'a day',
  604800: 'a week',
};
const delayField = { name: 'delay_seconds', label: 'By', value: '600', options: delays };

/** The dialogs of the commands that ask first. */
const dialogs = {
  Pause: (title) => ({
    title: `Pause “${title}”?`,
    text: 'It does not fire until it is resumed. Runs that have started continue.',
    done: `${title}: paused`,
  }),
  Resume: (title) => ({
    title: `Resume “${title}”?`,
    fields: [missedField],
    queryOf: ({ missed }) => ({ missed }),
    done: `${title}: resumed`,
  }),
  Snooze: (title) => ({
    title: `Postpone the next fire of “${title}”?`,
    text: 'It keeps its nominal time and runs later. Fires that come due in between do not run.',
    fields: [delayField],
    bodyOf: ({ delay_seconds }) => ({ delay_seconds: Number(delay_seconds) }),
    done: `${title}: next fire postponed`,
  }),
  Cancel: (title) => ({
    title: `Cancel “${title}” permanently?`,
    text: 'It will never fire again. Queued runs are canceled; running runs are asked to stop.',
    action: 'Cancel the task',
    done: `${title}: canceled`,
  }),
};

/**
 * @param task as it is now
 * @param {() => Promise<void>} done called after each command
 * @param {boolean} isSmall in lists
 */
export function TaskActions({ task, done, isSmall = false }) {
  if (!mayChange(task) || task.status === 'canceled') return null;
  const isActive = task.status === 'active';
  const size = isSmall ? 'small' : '';
  const labelOf = (text) => (isSmall ? `${text} ${task.title}` : null);
  const asking = (text, kind = '') => {
    const path = `tasks/${task.id}/${text.toLowerCase()}`;
    const dialog = { ...dialogs[text](task.title), path };
    return html`<${AskButton} key=${text} text=${text} kind="${kind} ${size}" label=${labelOf(text)}
      dialog=${dialog} done=${done} />`;
  };
  return [
    html`<${RunButton} key="Run" task=${task} done=${done} isSmall=${isSmall} label=${labelOf('Run')} />`,
    asking(isActive ? 'Pause' : 'Resume'),
    isActive && task.next_run_at !== null && asking('Snooze'),
    asking('Cancel', 'danger'),
  ];
}

/** Runs the task now; asks for its params first if the task has a schema for them. */
function RunButton({ task, done, isSmall, label }) {
  const text = isSmall ? 'Run' : 'Run now';
  const kind = isSmall ? 'small' : '';
  const path = `tasks/${task.id}/run_now`;
  const fields = paramFields(task);
  if (fields.length === 0) {
    const run = async () => runRequested(task, await command(path), done, isSmall);
    return html`<${Button} kind=${kind} label=${label} onClick=${run}>${text}<//>`;
  }
  let requested;
  const act = async ({ reason, ...values }) => {
    const params = paramsIn(task, values);
    requested = await command(path, { reason, body: { params } });
  };
  const dialog = { title: `Run “${task.title}” now?`, action: 'Run', fields, act };
  return html`<${AskButton} text=${text} kind=${kind} label=${label} dialog=${dialog}
    done=${() => runRequested(task, requested, done, isSmall)} />`;
}

/** Opens the run that was requested, unless it was requested from a list. */
async function runRequested({ title }, { details }, done, isSmall) {
  if (details.skip_reason !== undefined || details.deduplicated === true) {
    notify(`${title}: run skipped (${details.skip_reason ?? 'duplicate'})`);
  } else notify(`${title}: run requested`);
  const to = `runs/${details.run_id}`;
  if (isSmall || !maySee(to)) await done();
  else location.hash = `#/${to}`;
}

/** Runs fires of the past: asks for the span, and shows first what would run. */
export function BackfillButton({ task, done }) {
  if (!mayChange(task) || task.status === 'canceled' || task.schedule_kind === 'event') return null;
  const send = ({ reason, from, to, only, concurrency }, dry_run) => {
    // Times without an offset are in the task's time zone.
    const body = { from, to, only, dry_run, concurrency: Number(concurrency) };
    return command(`tasks/${task.id}/backfill`, { reason: dry_run ? '' : reason, body });
  };
  const preview = async (values) => {
    const { details } = await send(values, true);
    const shown = html`<${BackfillPreview} ...${details} timezone=${task.timezone} />`;
    const many = details.to_request;
    return { shown, action: many === 0 ? null : `Run ${counted(many, 'fire')}` };
  };
  const dialog = {
    title: `Backfill “${task.title}”`,
    text: `Runs fires of the past by the current schedule. Times are in the task’s time zone, ${task.timezone}.`,
    action: 'Backfill',
    fields: spanFields(task.timezone),
    preview,
    act: (values) => send(values, false),
    done: 'The backfill has started.',
  };
  return html`<${AskButton} text="Backfill …" dialog=${dialog} done=${done} />`;
}

function spanFields(timezone) {
  // By the calendar: a day on which clocks change does not have 24 hours.
  const today = inZone(new Date().toISOString(), timezone).slice(0, 10);
  const yesterday = new Date(Date.parse(today) - 86_400_000).toISOString().slice(0, 10);
  const field = { type: 'datetime-local', hint: timezone };
  const fires = { missing: 'those that have not run', all: 'all' };
  return [
    { name: 'from', label: 'From', ...field, value: `${yesterday}T00:00:00` },
    { name: 'to', label: 'To', ...field, value: `${yesterday}T23:59:59` },
    { name: 'only', label: 'Fires', options: fires, value: 'missing' },
    { name: 'concurrency', label: 'At once', type: 'number', min: 1, max: 100, value: '5' },
  ];
}

const BackfillPreview = ({ total, existing, to_request: requested, first, timezone }) =>
  html`<div class="outcome">
    <p>${total} fires in this span, ${existing} of them have run. ${requested} would run.</p>
    ${
      first.length > 0 &&
      html`<p class="hint">
      ${first
        .slice(0, 5)
        .map((at) => inZone(at, timezone))
        .join(', ')}${first.length > 5 && ' …'}
    </p>`
    }
  </div>`;
