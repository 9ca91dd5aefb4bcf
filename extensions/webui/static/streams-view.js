// The streams of the log, by what their names begin with.

import { call } from './client.js';
import { button, failure, h, heading, labelled, nothing, num, put, table, wide } from './dom.js';
import { keepInAddress, settled, turns } from './paging.js';
import { count, when } from './times.js';

const kinds = ['task-', 'fires-', 'run-', 'agent-', 'topic-', 'key-', 'projection-', 'refusals-'];

export async function streamsView(place, { query, signal }) {
  const prefix = h('input', {
    ...{ type: 'search', value: query.get('prefix') ?? '', spellcheck: 'false' },
  });
  const results = h('div', { 'aria-live': 'polite' });
  const nextTurn = turns(signal);

  async function load(cursor, before = []) {
    const isLatest = nextTurn();
    keepInAddress('streams', { prefix: prefix.value.trim() });
    try {
      const asks = { query: { prefix: prefix.value.trim(), limit: 50, cursor }, signal };
      const { items, next_cursor } = await call('GET', 'streams', asks);
      if (!isLatest()) return;
      const all = [...before, ...items];
      const rows = all.map(({ stream, revision, last_at }) => [
        h('a', { href: `#/streams/${encodeURIComponent(stream)}` }, h('code', {}, stream)),
        count(revision + 1),
        when(last_at),
      ]);
      put(
        results,
        table(
          'Streams',
          [wide('Stream'), num('Events'), 'Last event'],
          rows,
          nothing('No stream begins so.', 'Whole names and beginnings of names are found.'),
        ),
        next_cursor !== null && button('More', () => load(next_cursor, all), '.small'),
      );
    } catch (error) {
      if (isLatest())
        put(
          results,
          failure(error, () => load(cursor, before)),
        );
    }
  }

  prefix.addEventListener(
    'input',
    settled(200, () => load(), signal),
  );
  const begin = (text) => () => {
    prefix.value = text;
    return load();
  };
  put(
    place,
    heading('Streams'),
    h(
      'div.row.filters',
      { role: 'search' },
      labelled('Begins with', prefix),
      h(
        'div.row.chips',
        { role: 'group', 'aria-label': 'Kinds' },
        kinds.map((kind) => button(kind, begin(kind), '.small')),
      ),
    ),
    results,
  );
  await load();
}
