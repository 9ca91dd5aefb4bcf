// Banners in every view: the service does not respond, or is on hold.

import { html, useLayoutEffect } from '../../preact.js';
import { agentId, call, command, may } from '../../client.js';
import { useInterval } from '../../data.js';
import { readHealth } from '../../health.js';
import { setState, useStore } from '../../store.js';
import { askCommand } from '../../ui/dialog.js';
import { Button } from '../../ui/elements.js';
import { Actor, When } from '../../ui/names.js';

const BEAT = 10_000;

export function Banners() {
  const agent = useStore(({ agent: each }) => each?.agentId);
  const trouble = useStore((state) => state.trouble);
  const hold = useStore((state) => state.hold);
  // After an outage the service may be on hold.
  useLayoutEffect(() => {
    if (trouble === '') void readHold();
  }, [agent, trouble]);
  useInterval(readHold, BEAT);
  return html`<div role="status" aria-live="polite">
    ${trouble !== '' && html`<div class="banner bad">${trouble}</div>`}
    ${
      hold !== null &&
      html`<div class="banner wait">
      <span>
        <strong>On hold: no schedule fires and no run starts. </strong>
        “${hold.reason}”, <${Actor} id=${hold.by} name=${hold.by_name} />, <${When} at=${hold.since} />
      </span>
      ${may('ops') && html`<${ReleaseButton} />`}
    </div>`
    }
  </div>`;
}

/** Everybody sees a hold: operators from the hold itself, others from the service's health report. */
async function findHold() {
  if (may('ops')) return (await call('GET', 'operations')).hold;
  const { checks } = await readHealth();
  return checks.find(({ name }) => name === 'scheduler')?.hold ?? null;
}

async function readHold() {
  if (agentId() === undefined) return;
  try {
    const hold = await findHold();
    // The session may have ended in the meantime.
    if (agentId() !== undefined) setState({ hold });
  } catch (error) {
    // The other banner says why it is unknown.
    if (error.status === undefined) throw error;
  }
}

const missed = {
  '': 'what each task’s policy says',
  skip: 'none',
  latest: 'the latest of each task',
  all: 'all',
};
const missedField = {
  name: 'missed',
  label: 'Missed fires to run',
  options: missed,
};
const releaseDialog = {
  title: 'Release the service?',
  text: 'Queued runs start. Choose below what happens to missed fires.',
  action: 'Release',
  fields: [missedField],
  path: 'operations/release',
  bodyOf: ({ missed }) => (missed === '' ? {} : { missed }),
  done: 'The service was released.',
};

/** Asks for confirmation, and then holds or releases the service. */
export const askToHold = () => askCommand({ text: 'Hold', dialog: holdDialog, done: readHold });
export const askToRelease = () =>
  askCommand({ text: 'Release', dialog: releaseDialog, done: readHold });

const afterwards = (ask, done) => async () => {
  await ask();
  await done?.();
};

/** Puts the service on hold. The reason is part of the command. @param done called afterwards */
export const HoldButton = ({ kind = 'quiet', done }) =>
  html`<${Button} kind=${kind} onClick=${afterwards(askToHold, done)}>Hold the service …<//>`;

/** Ends the hold. */
export const ReleaseButton = ({ done }) =>
  html`<${Button} onClick=${afterwards(askToRelease, done)}>Release …<//>`;

const holdDialog = {
  title: 'Put the whole service on hold?',
  text: 'No schedule fires and no run starts, in any process, until it is released. Running runs continue.',
  action: 'Hold',
  kind: 'danger',
  required: 'Enter a reason.',
  act: ({ reason }) => command('operations/hold', { body: { reason } }),
  done: 'The service is on hold.',
};
