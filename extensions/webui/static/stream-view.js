// One stream, event by event: what each says, what it changed, and how things stood then.

import { call } from './client.js';
import { changeLine, differences, nested } from './changes.js';
import { button, facts, h, heading, json, nothing, part, put } from './dom.js';
import { actor, link, maySee } from './names.js';
import { clockText, count, moments } from './times.js';

/** Streams whose state the service folds, by what stands before the id. */
const histories = { task: 'tasks', run: 'runs', agent: 'agents' };
/** Where what a stream tells of is shown. */
const views = { task: 'tasks', run: 'runs', fires: 'tasks', agent: 'agents' };
const PAGE = 200;

/** When it happened; a store may have taken it in later. */
const atOf = ({ metadata, created_at }) => metadata.occurredAt ?? created_at;

export async function streamView(place, { id: stream, query, signal }) {
  const events = [];
  /** What each event changed, in turn; the state after each is folded from these. */
  const changes = [];
  const kind = stream.slice(0, stream.indexOf('-'));
  const record = stream.slice(kind.length + 1);
  const detail = h('div', { 'aria-live': 'polite' });
  const more = h('div');
  const list = h('ol.events');
  const marks = h('div.marks', { 'aria-hidden': 'true' });
  const ends = h('div.axis', { 'aria-hidden': 'true' });
  const slider = h('input', { type: 'range', min: 0, max: 0, step: 1, value: 0 });
  const asked = Number(query.get('at') ?? NaN);
  /** Of streams that may be long, the page with what is asked for is enough; what the service folds begins at the start. */
  let begins = !(kind in histories) && asked >= PAGE ? asked - (asked % PAGE) : 0;
  let from = begins;
  let cursor;

  async function load() {
    const asks = { query: { from, limit: PAGE }, signal };
    const page = await call('GET', `streams/${encodeURIComponent(stream)}`, asks);
    const first = events.length;
    events.push(...page.items);
    from = page.next_from;
    if (events.length === 0) return;
    if (kind in histories) await loadChanges();
    else foldData(first);
    slider.max = Math.max(0, events.length - 1);
    drawMarks();
    drawList(first);
    put(
      more,
      from !== null &&
        button(
          `Read on after the ${count(events.length)} so far`,
          async () => {
            await load();
            goTo(Number(slider.value) + 1);
          },
          '.small',
        ),
    );
  }

  /** The service says what each event changed: as many as there are events. */
  async function loadChanges() {
    while (cursor !== null && changes.length < events.length) {
      const asks = { query: { limit: PAGE, cursor }, signal };
      const page = await call('GET', `${histories[kind]}/${record}/history`, asks);
      for (const item of page.items) changes.push(item.changes);
      cursor = page.next_cursor;
    }
  }

  /** Of other streams, what stands is the latest that was said of each field. */
  function foldData(first) {
    let before = first === 0 ? {} : folded(first - 1);
    for (const { data } of events.slice(first)) {
      const then = { ...before, ...data };
      changes.push(differences(before, then));
      before = then;
    }
  }

  /** The changes up to an event, one over the other. */
  function folded(at) {
    const flat = new Map();
    for (const each of changes.slice(0, at + 1)) {
      for (const { path, after } of each) flat.set(path, after);
    }
    return nested([...flat].filter(([, value]) => value !== null));
  }

  /** Where the events lie in time. */
  function drawMarks() {
    const times = events.map((event) => Date.parse(atOf(event)));
    const [begin, end] = [times[0], times.at(-1)];
    put(
      marks,
      times.map((time) => {
        const mark = h('span');
        mark.style.left = `${end === begin ? 0 : ((time - begin) / (end - begin)) * 100}%`;
        return mark;
      }),
    );
    put(
      ends,
      h('span', {}, clockText(atOf(events[0]))),
      h('span', {}, clockText(atOf(events.at(-1)))),
    );
  }

  function drawList(first) {
    for (let at = first; at < events.length; at += 1) {
      const { revision, type } = events[at];
      list.append(
        h(
          'li',
          {},
          h(
            'button.quiet',
            { type: 'button', onclick: () => goTo(at) },
            h('span.soft', {}, String(revision)),
            ` ${type} `,
            h('span.soft', {}, clockText(atOf(events[at]))),
          ),
        ),
      );
    }
  }

  function show() {
    const at = Number(slider.value);
    const event = events[at];
    if (event === undefined) return;
    const { revision, type, metadata, data, position } = event;
    slider.setAttribute('aria-valuetext', `event ${revision}: ${type}, ${clockText(atOf(event))}`);
    for (const [n, mark] of [...marks.children].entries()) {
      mark.classList.toggle('passed', n < at);
      mark.classList.toggle('chosen', n === at);
    }
    list.querySelector('[aria-current]')?.removeAttribute('aria-current');
    const entry = list.children[at]?.firstElementChild;
    entry?.setAttribute('aria-current', 'true');
    const shown = list.getBoundingClientRect();
    const place = entry?.getBoundingClientRect();
    if (place && (place.top < shown.top || place.bottom > shown.bottom)) {
      list.scrollTop += place.top - shown.top - shown.height / 2;
    }
    const changed = changes[at] ?? [];
    put(
      detail,
      h(
        'div.columns.three',
        {},
        part(
          `${revision}: ${type}`,
          facts(
            ['At', moments(atOf(event))],
            ['By', actor(metadata.actor)],
            metadata.reason && ['Why', metadata.reason],
            metadata.source && ['From', metadata.source],
            ['Position', h('code', {}, position)],
          ),
          h('h3', {}, 'What it says'),
          json(data, 'Data of the event'),
        ),
        part(
          'What it changed',
          changed.length === 0 ? nothing('Nothing.') : h('ul.list', {}, changed.map(changeLine)),
        ),
        part(
          'How it stood then',
          !(kind in histories) &&
            h(
              'p.hint',
              {},
              'The latest that was said of each field',
              begins > 0 && ` since event ${events[0].revision}`,
              '.',
            ),
          json(folded(at), 'State at this event'),
        ),
      ),
    );
  }

  function goTo(at) {
    slider.value = String(at);
    show();
  }

  slider.addEventListener('input', show);
  await load();
  // It has fewer than were asked for.
  if (events.length === 0 && begins > 0) {
    begins = 0;
    from = begins;
    await load();
  }
  while (kind in histories && from !== null && events.at(-1).revision < asked) await load();
  const chosen = events.findIndex(({ revision }) => revision === asked);
  put(
    place,
    heading(
      stream,
      null,
      kind in views &&
        maySee(views[kind]) &&
        link(`${views[kind]}/${record}`, `The ${views[kind].slice(0, -1)}`, 'a.button'),
    ),
    h(
      'section.timeline',
      {},
      h('label.slider', {}, h('span', {}, 'Over time'), slider),
      marks,
      ends,
      h(
        'div.row.middle',
        {},
        button('‹ Before', () => goTo(Number(slider.value) - 1), '.small'),
        button('After ›', () => goTo(Number(slider.value) + 1), '.small'),
        h('span.soft', {}, `${count(events.length)} ${events.length === 1 ? 'event' : 'events'}`),
        more,
        begins > 0 && h('a', { href: `#/streams/${encodeURIComponent(stream)}` }, 'From its start'),
      ),
      h('details', {}, h('summary', {}, 'All of them by name'), list),
    ),
    detail,
  );
  goTo(chosen === -1 ? events.length - 1 : chosen);
}
