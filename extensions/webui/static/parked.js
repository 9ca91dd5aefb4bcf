// Keys of a view that are held back, since an event could not be folded: retried, or gone on without it.

import { call, order } from './client.js';
import { ask, reasonField } from './dialog.js';
import { button, failure, h, partWith, put, table, wide } from './dom.js';
import { link } from './names.js';
import { Pages, turns } from './paging.js';

/**
 * Shows the keys of a view.
 * @param {{signal: AbortSignal, changed: () => Promise<void>}} options called after each order
 */
export async function parkedPart(place, name, { signal, changed }) {
  const base = `projections/${encodeURIComponent(name)}/parked`;
  const pages = new Pages();
  const nextTurn = turns(signal);

  async function load() {
    const isLatest = nextTurn();
    try {
      const query = { limit: 25, cursor: pages.cursor };
      const page = await call('GET', base, { query, signal });
      if (isLatest()) show(page);
    } catch (error) {
      if (isLatest()) put(place, failure(error, load));
    }
  }

  function show(page) {
    const rows = page.items.map(({ key, position, stream, type, error }) => [
      h('code', {}, key),
      [
        link(`streams/${encodeURIComponent(stream)}`, type),
        h('p.hint', {}, `position ${Number(position)}`),
      ],
      error,
      h(
        'div.row',
        {},
        act(
          key,
          'Retry',
          'retry',
          'The event is folded after all, and all that followed for the key.',
        ),
        act(
          key,
          'Skip',
          'skip',
          'The event is left out of this document. A later rebuild meets it again.',
        ),
      ),
    ]);
    put(
      place,
      partWith(
        `Keys of ${name} that are held back`,
        button('Close', () => put(place), '.small'),
        table('Keys', ['Key', 'Event', wide('Why'), ''], rows, 'None is held back any more.'),
        pages.bar(page, 'key', load),
      ),
    );
  }

  const act = (key, text, verb, what) =>
    button(
      text,
      async () => {
        const went = await ask({
          title: `${text} ${key}?`,
          text: what,
          action: text,
          kind: verb === 'skip' ? '.danger' : '.main-action',
          fields: [reasonField],
          async act({ reason }) {
            const path = `${base}/${encodeURIComponent(key)}/${verb}`;
            const { details } = await order(path, { reason });
            if (details.error !== null) throw new Error(`Still held back: ${details.error}`);
          },
          done: `${name}: the key goes on`,
        });
        if (went) await Promise.all([load(), changed()]);
      },
      verb === 'skip' ? '.danger.small' : '.small',
    );

  await load();
}
