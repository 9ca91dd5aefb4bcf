// What everybody has to know, whatever they look at: the service does not answer, or is on hold.

import { call, may, order, whenTroubled, who } from './client.js';
import { ask, reasonField } from './dialog.js';
import { button, choice, h, put } from './dom.js';
import { actor } from './names.js';
import { when } from './times.js';

const BEAT = 10_000;

const trouble = h('div.banner.bad', { hidden: true });
const held = h('div.banner.wait', { hidden: true });
let shown;

/** Begins to watch, for as long as the page is there. */
export function startBanners() {
  put(document.getElementById('banners'), trouble, held);
  whenTroubled((text) => {
    if (trouble.textContent === text) return;
    trouble.textContent = text;
    trouble.hidden = text === '';
    // Whoever was away may find it on hold.
    if (text === '') void look();
  });
  setInterval(() => {
    if (!document.hidden) void look();
  }, BEAT);
}

/** Looks whether the service is on hold. What can't be known is not said; the other banner says why. */
export async function look() {
  if (!may('ops')) {
    showHold(null);
    return;
  }
  try {
    const { hold } = await call('GET', 'operations');
    showHold(who() === null ? null : hold);
  } catch (error) {
    if (error.status === undefined) throw error;
  }
}

function showHold(hold) {
  const key = JSON.stringify(hold);
  if (key === shown) return;
  shown = key;
  held.hidden = hold === null;
  if (hold === null) put(held);
  else {
    put(
      held,
      h(
        'span',
        {},
        h('strong', {}, 'On hold: nothing fires and no run starts. '),
        `“${hold.reason}”, `,
        actor(hold.by),
        ', ',
        when(hold.since),
      ),
      button('Release …', release),
    );
  }
}

async function release() {
  const went = await ask({
    title: 'Release the service?',
    text: 'Queued runs start. What was due meanwhile is decided as you say here.',
    action: 'Release',
    fields: [
      {
        name: 'missed',
        label: 'Of the fires that were held back, run',
        control: () =>
          choice(
            [
              ['', 'as each task says'],
              ['skip', 'none'],
              ['latest', 'the latest of each task'],
              ['all', 'all'],
            ],
            '',
          ),
      },
      reasonField,
    ],
    act: ({ missed, reason }) =>
      order('operations/release', { reason, body: missed === '' ? {} : { missed } }),
    done: 'The service goes on.',
  });
  if (went) await look();
}

/** Asks why, and puts the service on hold. */
export async function holdService() {
  const went = await ask({
    title: 'Put the whole service on hold?',
    text: 'Nothing fires and no run starts, in any process, until it is released. What runs goes on.',
    action: 'Hold',
    kind: '.danger',
    fields: [
      {
        name: 'reason',
        label: 'Why',
        required: 'Say why.',
        control: () => h('input', { maxlength: 1000, autocomplete: 'off' }),
      },
    ],
    act: ({ reason }) => order('operations/hold', { body: { reason } }),
    done: 'The service is on hold.',
  });
  if (went) await look();
}
