// One stream, event by event: the data of each event, its changes, and the state after it.

import { html, useEffect, useLayoutEffect, useRef, useState } from '../../preact.js';
import { setAddress } from '../../address.js';
import { maySee } from '../../routes.js';
import { count, counted, dateText } from '../../times.js';
import { Changes } from '../../ui/changes.js';
import { Button, Json, Link, Nothing } from '../../ui/elements.js';
import { Facts, Heading, LoadedView, Section } from '../../ui/layout.js';
import { Actor, InstantAndDistance } from '../../ui/names.js';
import { foldedKinds, stateAt, timeOf, useEvents } from './stream-events.js';

/** How long the slider must rest before the address is updated, in milliseconds. */
const REST = 250;
/** Where the subject of a stream is shown, by the prefix of its name. */
const views = { task: 'tasks', run: 'runs', fires: 'tasks', agent: 'agents' };

export function StreamView({ id: stream, query }) {
  const at = query.has('at') ? Number(query.get('at')) : null;
  const events = useEvents(stream, at);
  const [kind] = stream.split('-', 1);
  const view = views[kind];
  const link =
    view !== undefined &&
    maySee(view) &&
    html`<${Link} to="${view}/${stream.slice(kind.length + 1)}" kind="button">
      ${`The ${view.slice(0, -1)}`}
    <//>`;
  return html`<${LoadedView} of=${events}>
    ${(data) => html`<${Heading} title=${stream}>${link}<//>
      <${Steps} ...${data} stream=${stream} at=${at} isFolded=${kind in foldedKinds} />`}
  <//>`;
}

function Steps({ stream, at, isFolded, events, changes, next, readOn }) {
  const [chosen, choose] = useState(() => {
    const asked = events.findIndex(({ revision }) => revision === at);
    return asked === -1 ? events.length - 1 : asked;
  });
  useAddressOf(stream, events[chosen]);
  const goTo = (index) => choose(Math.max(0, Math.min(index, events.length - 1)));
  const starts = events[0].revision;
  const moreText = `Read on after the first ${count(events.length)}`;
  const more = async () => {
    await readOn();
    choose(chosen + 1);
  };
  return html`<section class="timeline">
      <${Slider} events=${events} chosen=${chosen} goTo=${goTo} />
      <div class="row middle">
        <${Button} kind="small" onClick=${() => goTo(chosen - 1)}>‹ Previous<//>
        <${Button} kind="small" onClick=${() => goTo(chosen + 1)}>Next ›<//>
        <span class="soft">${counted(events.length, 'event')}</span>
        ${next !== null && html`<${Button} kind="small" onClick=${more}>${moreText}<//>`}
        ${starts > 0 && html`<a href="#/system/streams/${encodeURIComponent(stream)}">From its start</a>`}
      </div>
      <details>
        <summary>All events by name</summary><${List} events=${events} chosen=${chosen} goTo=${goTo} />
      </details>
    </section>
    <${Event} event=${events[chosen]} changes=${changes[chosen] ?? []} state=${stateAt(changes, chosen)}
      since=${isFolded ? null : starts} />`;
}

/** Puts the chosen event into the address once the slider rests. */
function useAddressOf(stream, { revision }) {
  useEffect(() => {
    const keep = () => setAddress(`system/streams/${encodeURIComponent(stream)}`, `at=${revision}`);
    const timer = setTimeout(keep, REST);
    return () => clearTimeout(timer);
  }, [revision]);
}

/** Where the events lie in time. */
function Slider({ events, chosen, goTo }) {
  const times = events.map((event) => Date.parse(timeOf(event)));
  const [first, last] = [times[0], times.at(-1)];
  const left = (time) => `${first === last ? 0 : ((time - first) / (last - first)) * 100}%`;
  const { revision, type } = events[chosen];
  const text = `event ${revision}: ${type}, ${dateText(timeOf(events[chosen]))}`;
  const kindOf = (n) => (n < chosen ? 'passed' : n === chosen ? 'chosen' : null);
  return html`<div class="field">
      <label for="slider">Position in time</label>
      <input id="slider" type="range" min="0" max=${events.length - 1} value=${chosen}
        aria-valuetext=${text} onInput=${({ target }) => goTo(Number(target.value))} />
    </div>
    <div class="marks" aria-hidden="true">
      ${times.map((time, n) => html`<span class=${kindOf(n)} style=${{ left: left(time) }}></span>`)}
    </div>
    <div class="axis" aria-hidden="true">
      <span>${dateText(timeOf(events[0]))}</span><span>${dateText(timeOf(events.at(-1)))}</span>
    </div>`;
}

function List({ events, chosen, goTo }) {
  const list = useRef();
  useLayoutEffect(() => {
    const shown = list.current.getBoundingClientRect();
    const entry = list.current.children[chosen].getBoundingClientRect();
    if (entry.top < shown.top || entry.bottom > shown.bottom) {
      list.current.scrollTop += entry.top - shown.top - shown.height / 2;
    }
  }, [chosen]);
  return html`<ol class="events" ref=${list}>
    ${events.map(
      (event, n) => html`<li key=${event.revision}>
        <button class="quiet" type="button" onClick=${() => goTo(n)}
          aria-current=${n === chosen ? 'true' : null}>
          <span class="soft">${event.revision}</span>${` ${event.type} `}
          <span class="soft">${dateText(timeOf(event))}</span>
        </button>
      </li>`,
    )}
  </ol>`;
}

/** @param since the first revision from which the state is built; null if the service builds it */
function Event({ event, changes, state, since }) {
  const { revision, type, metadata, data, position } = event;
  const facts = [
    ['At', html`<${InstantAndDistance} at=${timeOf(event)} />`],
    ['By', html`<${Actor} id=${metadata.actor} />`],
    metadata.reason && ['Why', metadata.reason],
    metadata.source && ['From', metadata.source],
    ['Position', html`<code>${position}</code>`],
  ];
  const from = since > 0 ? ` since event ${since}` : '';
  return html`<div class="columns three" aria-live="polite">
    <${Section} title="${revision}: ${type}">
      <${Facts} of=${facts} />
      <h3>Data</h3>
      <${Json} label="Data of the event" value=${data} />
    <//>
    <${Section} title="Changes">
      ${changes.length === 0 ? html`<${Nothing} text="None." />` : html`<${Changes} of=${changes} />`}
    <//>
    <${Section} title="State after this event">
      ${since !== null && html`<p class="hint">The latest value of each field${from}.</p>`}
      <${Json} label="State after this event" value=${state} />
    <//>
  </div>`;
}
