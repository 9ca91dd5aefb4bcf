// What everybody has to know, whatever they look at: the service does not respond, or is on hold.

import { html, useLayoutEffect } from '../preact.js';
import { agentId, call, command, may } from '../client.js';
import { useInterval } from '../data.js';
import { setState, useStore } from '../store.js';
import { ask, reasonField } from '../ui/dialog.js';
import { Button } from '../ui/elements.js';
import { Actor, When } from '../ui/names.js';

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
        “${hold.reason}”, <${Actor} id=${hold.by} />, <${When} at=${hold.since} />
      </span>
      <${Button} onClick=${release}>Release …<//>
    </div>`
    }
  </div>`;
}

async function readHold() {
  if (!may('ops')) return;
  try {
    const { hold } = await call('GET', 'operations');
    if (agentId() !== undefined) setState({ hold });
  } catch (error) {
    // The other banner says why it is unknown.
    if (error.status === undefined) throw error;
  }
}

async function release() {
  const isDone = await ask({
    title: 'Release the service?',
    text: 'Queued runs start. Choose below what happens to fires that were held back.',
    action: 'Release',
    fields: [
      {
        name: 'missed',
        label: 'Of the fires that were held back, run',
        options: [
          ['', 'what each task’s policy says'],
          ['skip', 'none'],
          ['latest', 'the latest of each task'],
          ['all', 'all'],
        ],
      },
      reasonField,
    ],
    act: ({ missed, reason }) =>
      command('operations/release', { reason, body: missed === '' ? {} : { missed } }),
    done: 'The service was released.',
  });
  if (isDone) await readHold();
}

/** Asks why, and puts the service on hold. */
export async function holdService() {
  const isDone = await ask({
    title: 'Put the whole service on hold?',
    text: 'No schedule fires and no run starts, in any process, until it is released. Running runs continue.',
    action: 'Hold',
    kind: 'danger',
    fields: [{ name: 'reason', label: 'Why', required: 'Enter a reason.', maxlength: 1000 }],
    act: ({ reason }) => command('operations/hold', { body: { reason } }),
    done: 'The service is on hold.',
  });
  if (isDone) await readHold();
}
