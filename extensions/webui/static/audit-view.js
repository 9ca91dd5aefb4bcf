// Who did what, and what was refused. Live when asked for.

import { call } from './client.js';
import {
  button,
  choice,
  failure,
  h,
  heading,
  labelled,
  minor,
  put,
  state,
  table,
  wide,
} from './dom.js';
import { follow, liveMark } from './live.js';
import { actor, learnAgents } from './names.js';
import { keepInAddress, settled, turns } from './paging.js';
import { clockText, count, when } from './times.js';

const PAGE = 50;
/** So many come live on top of what was read; then it is read anew, and begins with its first page. */
const MOST_LIVE = 200;
/** Between two drawings of what comes live. Milliseconds. */
const BEAT = 250;
/** Before what the view has not come to yet is asked for again. Milliseconds. */
const PAUSE = 1000;

export async function auditView(place, { query, signal }) {
  const outcome = choice(
    [
      ['', 'all'],
      ['CommandRefused', 'refused commands'],
      ['done', 'done'],
      ['failed', 'failed'],
      ['refused', 'refused'],
    ],
    query.get('type') === 'CommandRefused' ? 'CommandRefused' : (query.get('outcome') ?? ''),
  );
  const text = (name) => h('input', { value: query.get(name) ?? '', spellcheck: 'false' });
  const by = text('actor');
  const type = h('input', {
    value: query.get('type') === 'CommandRefused' ? '' : (query.get('type') ?? ''),
    spellcheck: 'false',
  });
  const stream = text('stream');
  const source = text('source');
  const request = text('correlation_id');
  const search = text('search');
  const instant = (name) =>
    h('input', { type: 'datetime-local', step: 1, value: query.get(name) ?? '' });
  const since = instant('from');
  const until = instant('to');
  const results = h('div', { 'aria-live': 'polite' });
  const live = liveMark();
  let following = new AbortController();
  let items = [];
  let fresh = 0;
  let drawing = null;
  let again = null;
  const nextTurn = turns(signal);
  let reading = 0;
  const iso = ({ value }) => (value === '' ? '' : new Date(value).toISOString());
  const what = () => ({
    actor: by.value.trim(),
    type: outcome.value === 'CommandRefused' ? outcome.value : type.value.trim(),
    outcome: outcome.value === 'CommandRefused' ? '' : outcome.value,
    stream: stream.value.trim(),
    source: source.value.trim(),
    correlation_id: request.value.trim(),
    search: search.value.trim(),
  });

  /** @param after position that what is read has to have passed */
  async function load(cursor, after) {
    const isLatest = nextTurn();
    clearTimeout(again);
    reading += 1;
    keepInAddress('audit', { ...what(), from: since.value, to: until.value });
    try {
      const page = await call('GET', 'audit', {
        query: { ...what(), from: iso(since), to: iso(until), limit: PAGE, cursor, after },
        signal,
      });
      if (!isLatest()) return;
      if (cursor === undefined) {
        const first = page.items[0]?.position ?? '';
        const newer = items.filter(({ position }) => position > first);
        items = [...newer, ...page.items];
        fresh = newer.length;
      } else items = [...items, ...page.items];
      show(page);
    } catch (error) {
      if (!isLatest()) return;
      // The view is behind for a moment: what was read before stays.
      if (error.status === 503 && after !== undefined) {
        again = setTimeout(() => void load(cursor, after), PAUSE);
        return;
      }
      put(
        results,
        failure(error, () => load(cursor)),
      );
    } finally {
      reading -= 1;
    }
  }

  function show({ next_cursor, total }) {
    put(
      results,
      total !== null && total !== undefined && h('p.soft', {}, `${count(total)} in all`),
      table(
        'Audit',
        ['When', 'Who', 'Outcome', wide('What'), minor('Why'), minor('From')],
        items.map(auditRow),
        'Nothing is like that.',
      ),
      next_cursor !== null &&
        next_cursor !== undefined &&
        button('Older', () => load(next_cursor), '.small'),
    );
  }

  /** From now on, until something else is asked for. */
  function goLive() {
    following.abort();
    if (signal.aborted) return;
    following = new AbortController();
    // Of what is over, and of what the service does itself, nothing is told live.
    if (until.value !== '' || by.value.trim() === 'service') {
      live.say('refused');
      return;
    }
    const own = following;
    let begun = false;
    void follow('audit/live', {
      signal: own.signal,
      query: what(),
      stateChanged: live.say,
      told(name, item) {
        if (own.signal.aborted) return;
        // What happened between the list and this stream is in the list by now.
        if (name === 'live.started' && !begun) void load(undefined, item.position);
        begun = true;
        if (!name.startsWith('audit.')) return;
        if (items.some(({ position }) => position === item.position)) return;
        items = [item, ...items];
        fresh += 1;
        drawing ??= setTimeout(draw, BEAT);
      },
    });
  }
  function draw() {
    drawing = null;
    // Older pages go on after what was read: a list cut at its end would leave out what lies between.
    if (fresh > MOST_LIVE) {
      // Asked for again before it is answered, no answer would be the last one, and none be shown.
      if (reading > 0) {
        // More than are kept: it is read once more.
        items.length = Math.min(items.length, MOST_LIVE + 1);
        drawing = setTimeout(draw, BEAT);
        return;
      }
      fresh = 0;
      void load();
      return;
    }
    const body = results.querySelector('tbody');
    // Older pages keep their button; only the rows are new.
    if (body === null) show({});
    else put(body, rowsOf(items));
  }

  const changed = settled(
    300,
    async () => {
      following.abort();
      items = [];
      await load();
      goLive();
    },
    signal,
  );
  for (const control of [outcome, by, type, stream, source, request, search, since, until]) {
    control.addEventListener('input', changed);
  }
  signal.addEventListener('abort', () => {
    following.abort();
    clearTimeout(drawing);
    clearTimeout(again);
  });
  put(
    place,
    heading('Audit', live.mark),
    h(
      'div.row.filters',
      { role: 'search' },
      labelled('Outcome', outcome),
      labelled('Who (id, or “service”)', by),
      labelled('Type of event', type),
      labelled('Stream', stream),
      labelled('From address', source),
      labelled('Request', request),
      labelled('Search', search),
      labelled('From', since),
      labelled('To', until),
    ),
    results,
  );
  await learnAgents(signal);
  await load();
  goLive();
}

/** Rows as a table of the page has them. */
const rowsOf = (items) => [
  ...table(
    'Audit',
    ['When', 'Who', 'Outcome', wide('What'), minor('Why'), minor('From')],
    items.map(auditRow),
  ).querySelectorAll('tbody > tr'),
];

function auditRow({
  at,
  actor: by,
  actor_name: name,
  outcome,
  action,
  type,
  stream,
  task_title: title,
  revision,
  reason,
  refusal,
  call: called,
  source,
}) {
  const href = `#/streams/${encodeURIComponent(stream)}?at=${revision}`;
  const isOfStream = refusal === null && called === null;
  const what = [
    h('a.name', { href }, isOfStream ? type : action),
    title !== null && [' ', title],
    isOfStream && [' ', h('code.soft', {}, stream)],
  ];
  const often =
    called !== null &&
    (called.code !== null || called.count > 1) &&
    h('p.hint', {}, [
      called.code ?? '',
      called.count > 1 &&
        ` ${count(called.count)} times from ${clockText(called.first_at)} to ${clockText(called.last_at)}`,
    ]);
  const refused =
    refusal !== null &&
    h('p.hint', {}, [
      `${refusal.status} ${refusal.code}`,
      refusal.path !== null && [' at ', h('code', {}, refusal.path)],
      refusal.count > 1 &&
        `, ${count(refusal.count)} times from ${clockText(refusal.first_at)} to ${clockText(refusal.last_at)}`,
    ]);
  return [
    when(at),
    actor(by, name),
    outcome === 'refused' ? state('refused') : h('span.soft', {}, outcome),
    [what, refused, often],
    reason ?? '',
    source,
  ];
}
