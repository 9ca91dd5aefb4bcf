// The views of the log: how far each is, and its rebuild.

import { call } from './client.js';
import { attempt, button, h, put, state, table } from './dom.js';
import { duration } from './times.js';

const BEAT = 2000;

export async function projectionsView(place, { signal }) {
  const results = h('div');
  let busy = false;

  async function load() {
    const { projections } = await call('GET', 'projections', { signal });
    // A button that has the focus keeps it: the list waits.
    if (results.contains(document.activeElement) && document.activeElement.tagName === 'BUTTON')
      return;
    const rows = projections.map((view) => [
      h('strong', {}, view.name),
      [state(view.state), view.detail && h('p.hint', {}, view.detail)],
      `version ${view.version}, schema ${view.schema}`,
      h('code', {}, view.position),
      duration(view.lag_seconds * 1000),
      view.parked === 0 ? '0' : h('strong.fault', {}, String(view.parked)),
      rebuildCell(view),
    ]);
    const heads = ['View', 'State', 'Generation', 'Position', 'Lag', 'Keys held back', 'Rebuild'];
    put(results, table('Views', heads, rows));
  }

  const order = (text, name, verb, question, kind) =>
    button(
      text,
      async () => {
        if (question !== undefined && !confirm(question)) return;
        busy = true;
        await attempt(async () => {
          await call('POST', `projections/${encodeURIComponent(name)}/${verb}`);
        }, `${name}: ordered`);
        busy = false;
        document.activeElement.blur();
        await attempt(load);
      },
      kind,
    );

  function rebuildCell({ name, rebuild, previous }) {
    if (rebuild === null) {
      return h(
        'div.row',
        {},
        order('Rebuild', name, 'rebuild', `Make ${name} anew beside the one that is read?`),
        previous !== null &&
          order('Roll back', name, 'rollback', `Read version ${previous.version} again?`),
      );
    }
    const { progress, seconds_left, state: how, detail } = rebuild;
    const percent = Math.floor(progress * 100);
    const left = seconds_left === null ? '' : `, ${duration(seconds_left * 1000)} left`;
    return [
      h('progress', { value: progress, max: 1, 'aria-label': `Rebuild of ${name}` }),
      h('p', {}, `${how.replaceAll('_', ' ')}, ${percent} %${left}`),
      detail && h('p.hint', {}, detail),
      h(
        'div.row',
        {},
        order('Switch', name, 'switch'),
        order('Cancel', name, 'cancel', undefined, '.danger'),
      ),
    ];
  }

  put(place, h('h1', {}, 'Projections'), results);
  await load();
  const beat = setInterval(() => {
    if (busy || document.hidden) return;
    void load().catch((error) => {
      if (!signal.aborted) put(results, h('p.fault', { role: 'alert' }, error.message));
    });
  }, BEAT);
  signal.addEventListener('abort', () => clearInterval(beat));
}
