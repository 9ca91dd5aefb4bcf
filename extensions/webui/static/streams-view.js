// The streams of the log, and one of them event by event: what it says, what it changed, how things stood then.

import { call } from './client.js';
import { button, facts, h, json, labelled, part, put, table } from './dom.js';
import { changeLine } from './task-view.js';
import { moment, when } from './times.js';

export async function streamsView(place, { query, signal }) {
  const prefix = h('input', { value: query.get('prefix') ?? '', spellcheck: 'false' });
  const results = h('div', { 'aria-live': 'polite' });
  const load = async (cursor, before = []) => {
    const asks = { query: { prefix: prefix.value.trim(), limit: 50, cursor }, signal };
    const { items, next_cursor } = await call('GET', 'streams', asks);
    const all = [...before, ...items];
    const rows = all.map(({ stream, revision, last_at }) => [
      h('a', { href: `#/streams/${encodeURIComponent(stream)}` }, stream),
      String(revision + 1),
      when(last_at),
    ]);
    put(
      results,
      table('Streams', ['Stream', 'Events', 'Last'], rows, 'No stream begins so.'),
      next_cursor !== null && button('More', () => load(next_cursor, all)),
    );
  };
  const submit = async (event) => {
    event.preventDefault();
    await load().catch((error) => put(results, h('p.fault', { role: 'alert' }, error.message)));
  };
  put(
    place,
    h('h1', {}, 'Streams'),
    h(
      'form.row',
      { onsubmit: submit, role: 'search' },
      labelled('Begins with (task-, run-, agent-, topic-, …)', prefix),
      h('button', { type: 'submit' }, 'Show'),
    ),
    results,
  );
  await load();
}

/** Streams whose state the service folds, by what stands before the id. */
const histories = { task: 'tasks', run: 'runs', agent: 'agents' };

export async function streamView(place, { id: stream, signal }) {
  const events = [];
  const changes = new Map();
  const kind = stream.slice(0, stream.indexOf('-'));
  const record = stream.slice(kind.length + 1);
  const detail = h('div', { 'aria-live': 'polite' });
  const more = h('div');
  const slider = h('input', { type: 'range', min: 0, max: 0, step: 1, value: 0 });
  let from;
  let cursor;

  async function load() {
    const asks = { query: { from, limit: 200 }, signal };
    const page = await call('GET', `streams/${encodeURIComponent(stream)}`, asks);
    events.push(...page.items);
    from = page.next_from;
    if (kind in histories) await loadChanges();
    slider.max = events.length - 1;
    put(
      more,
      from !== null && button(`Read on after the ${events.length} so far`, () => load().then(show)),
    );
  }

  /** As many as there are events. */
  async function loadChanges() {
    while (cursor !== null && changes.size < events.length) {
      const asks = { query: { limit: 200, cursor }, signal };
      const page = await call('GET', `${histories[kind]}/${record}/history`, asks);
      for (const item of page.items) changes.set(item.revision, item.changes);
      cursor = page.next_cursor;
    }
  }

  function show() {
    const at = Number(slider.value);
    const event = events[at];
    if (event === undefined) return;
    const { revision, type, created_at, metadata, data, position } = event;
    slider.setAttribute('aria-valuetext', `event ${revision}: ${type}`);
    const changed =
      changes.get(revision) ?? (kind in histories ? [] : differences(events[at - 1]?.data, data));
    put(
      detail,
      h(
        'div.columns',
        {},
        part(
          `${revision}: ${type}`,
          facts(
            ['At', moment(created_at)],
            ['By', metadata.actor],
            metadata.reason && ['Why', metadata.reason],
            ['Position', position],
          ),
          h('h2', {}, 'What it says'),
          json(data, 'Data of the event'),
        ),
        h(
          'div',
          {},
          part(
            kind in histories ? 'What it changed' : 'What differs from the event before',
            changed.length === 0
              ? h('p.soft', {}, 'Nothing.')
              : h('ul.list', {}, changed.map(changeLine)),
          ),
          kind in histories && part('How it stood then', json(folded(at), 'State at this event')),
        ),
      ),
    );
  }

  /** The changes up to an event, one over the other. */
  function folded(at) {
    const flat = new Map();
    for (const { revision } of events.slice(0, at + 1)) {
      for (const { path, after } of changes.get(revision) ?? []) flat.set(path, after);
    }
    return Object.fromEntries([...flat].filter(([, value]) => value !== null));
  }

  const step = (by) => () => {
    slider.value = String(Number(slider.value) + by);
    show();
  };
  slider.addEventListener('input', show);
  await load();
  slider.value = slider.max;
  put(
    place,
    h('h1', {}, stream),
    h(
      'section',
      {},
      h('label', {}, 'Over time', slider),
      h('div.row', {}, button('Before', step(-1)), button('After', step(1))),
      more,
    ),
    detail,
  );
  show();
}

/** Top fields that differ, in the form of the service's own changes. */
function differences(before = {}, after = {}) {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .map((path) => ({ path, before: before[path] ?? null, after: after[path] ?? null }))
    .filter((each) => JSON.stringify(each.before) !== JSON.stringify(each.after));
}
