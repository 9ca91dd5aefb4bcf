// The views of the log: how far each is, its rebuild, and keys that are held back.

import { call, order } from './client.js';
import { ask, reasonField } from './dialog.js';
import { button, choice, failure, h, heading, num, put, state, table, wide } from './dom.js';
import { parkedPart } from './parked.js';
import { count, duration, when } from './times.js';

const BEAT = 1500;

export async function projectionsView(place, { signal }) {
  const results = h('div');
  const parked = h('div');
  let busy = false;

  async function load({ anyway = true } = {}) {
    try {
      const { projections } = await call('GET', 'projections', { signal });
      // Somebody reads how one differs: it stays.
      if (anyway || results.querySelector('details[open]') === null) show(projections);
    } catch (error) {
      if (!signal.aborted) put(results, failure(error, load));
    }
  }

  function show(projections) {
    const rows = projections.map((view) => [
      h('strong', {}, view.name),
      [state(view.state), view.detail && h('p.hint', {}, view.detail)],
      `${view.version}`,
      `${view.schema}`,
      h('code', {}, count(Number(view.position) || 0)),
      duration(view.lag_seconds * 1000),
      view.parked === 0
        ? '0'
        : button(
            count(view.parked),
            () => parkedPart(parked, view.name, { signal, changed: load }),
            '.danger.small',
            { 'aria-label': `${view.parked} keys of ${view.name} held back: show` },
          ),
      rebuildCell(view),
    ]);
    const columns = [
      'View',
      'State',
      num('Version'),
      num('Schema'),
      num('Position'),
      num('Lag'),
      num('Held back'),
      wide('Rebuild'),
    ];
    put(results, table('Views', columns, rows));
  }

  const act = (text, name, options, kind = '') =>
    button(
      text,
      async () => {
        busy = true;
        const { verb, bodyOf, ...rest } = options;
        await ask({
          ...rest,
          fields: [...(rest.fields ?? []), reasonField],
          act: ({ reason, ...values }) =>
            order(`projections/${encodeURIComponent(name)}/${verb}`, {
              reason,
              ...(bodyOf && { body: bodyOf(values) }),
            }),
          done: `${name}: ordered`,
        });
        busy = false;
        await load();
      },
      `${kind}.small`,
      { 'aria-label': `${text} ${name}` },
    );

  function rebuildCell({ name, version, rebuild, previous }) {
    if (rebuild === null) {
      return h(
        'div.row',
        {},
        act('Rebuild', name, {
          verb: 'rebuild',
          title: `Make ${name} anew?`,
          text: 'From the whole log, beside the one that is read. Reads never stop, and nothing fires or is sent.',
          action: 'Rebuild',
          fields: [
            {
              name: 'switch',
              label: 'When it is level with the log',
              control: () =>
                choice(
                  [
                    ['manual', 'wait: I look at the differences first'],
                    ['auto', 'let reads go to it'],
                  ],
                  'manual',
                ),
            },
            {
              name: 'rate',
              label: 'Events a second at most',
              hint: 'Left out: as fast as it goes.',
              control: () => h('input', { type: 'number', min: 1 }),
            },
          ],
          bodyOf: ({ rate, switch: how }) => ({
            switch: how,
            ...(rate === '' ? {} : { rate: Number(rate) }),
          }),
        }),
        previous !== null && [
          act('Roll back', name, {
            verb: 'rollback',
            title: `Let reads of ${name} go back to version ${previous.version}?`,
            text: 'It has missed nothing. Version ' + version + ' is kept the same way.',
            action: 'Roll back',
            // Somebody else may have done it meanwhile: to roll that back again is not what is meant.
            bodyOf: () => ({ expected_version: version }),
          }),
          h('span.hint', {}, `version ${previous.version} is kept, ends `, when(previous.until)),
        ],
      );
    }
    return [progressOf(name, rebuild), ordersOf(name, rebuild, version)];
  }

  function ordersOf(name, { state: how, version, comparison }, live) {
    const under = how !== 'ready' && how !== 'failed';
    return h(
      'div.row',
      {},
      under &&
        how !== 'paused' &&
        act('Pause', name, {
          verb: 'pause',
          title: `Let the rebuild of ${name} rest?`,
          action: 'Pause',
        }),
      how === 'paused' &&
        act('Resume', name, {
          verb: 'resume',
          title: `Let the rebuild of ${name} go on?`,
          action: 'Resume',
        }),
      how === 'ready' &&
        act(
          'Switch',
          name,
          {
            verb: 'switch',
            title: `Let reads of ${name} go to version ${version}?`,
            text:
              comparison === null ? 'There is none to compare it with.' : sayComparison(comparison),
            action: 'Switch',
            bodyOf: () => ({ expected_version: live }),
          },
          '.main-action',
        ),
      act(
        how === 'failed' ? 'Forget' : 'Cancel',
        name,
        {
          verb: 'cancel',
          title: `Throw away what the rebuild of ${name} has made?`,
          action: how === 'failed' ? 'Forget it' : 'Cancel the rebuild',
          kind: '.danger',
        },
        '.danger',
      ),
    );
  }

  put(
    place,
    heading(
      'Projections',
      null,
      h('span.soft', {}, 'the views that reads go to, folded from the log'),
    ),
    results,
    parked,
  );
  await load();
  if (signal.aborted) return;
  const beat = setInterval(() => {
    if (!busy && !document.hidden) void load({ anyway: false });
  }, BEAT);
  signal.addEventListener('abort', () => clearInterval(beat));
}

function progressOf(name, rebuild) {
  const { progress, seconds_left, state: how, detail, comparison, version } = rebuild;
  const { handled, events_per_second } = rebuild;
  const left = seconds_left === null ? '' : `, ${duration(seconds_left * 1000)} left`;
  const rate = events_per_second > 0 ? `, ${count(Math.round(events_per_second))} a second` : '';
  return h(
    'div.rebuild',
    {},
    h('div.row.middle', {}, state(how), h('span.soft', {}, `version ${version}`)),
    how !== 'ready' &&
      how !== 'failed' && [
        h('progress', { value: progress, max: 1, 'aria-label': `Rebuild of ${name}` }),
        h('p.hint', {}, `${Math.floor(progress * 100)} %, ${count(handled)} events${rate}${left}`),
      ],
    detail && h('p.hint', {}, detail),
    comparison !== null && [
      h('p.hint', {}, sayComparison(comparison)),
      comparison.first.length > 0 &&
        h(
          'details',
          {},
          h('summary', {}, 'The first that differ'),
          h(
            'ul.list',
            {},
            comparison.first.map(({ key, difference, fields }) =>
              h(
                'li',
                {},
                h('code', {}, key),
                ' ',
                state(difference),
                fields.length > 0 && ` ${fields.join(', ')}`,
              ),
            ),
          ),
        ),
    ],
  );
}

function sayComparison({ documents_before, documents_after, compared, different, complete }) {
  const looked = complete ? 'all' : `the first ${count(compared)}`;
  const what = different === 0 ? 'none differs' : `${count(different)} differ`;
  return `${count(documents_before)} documents now, ${count(documents_after)} then; of ${looked}, ${what}.`;
}
