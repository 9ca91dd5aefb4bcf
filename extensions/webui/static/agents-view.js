// Agents: who may what, and what their webhooks were told.

import { call, callFully, order } from './client.js';
import { ask, reasonField } from './dialog.js';
import {
  button,
  choice,
  facts,
  failure,
  h,
  heading,
  json,
  labelled,
  lines,
  minor,
  nothing,
  num,
  part,
  put,
  state,
  table,
  wide,
} from './dom.js';
import { Pages, settled, turns } from './paging.js';
import { count, duration, moment, moments, when } from './times.js';

export async function agentsView(place, { signal }) {
  const name = h('input', { type: 'search' });
  const results = h('div', { 'aria-live': 'polite' });
  const nextTurn = turns(signal);
  async function load(before = []) {
    const isLatest = nextTurn();
    try {
      const query = { name_filter: name.value.trim(), limit: 200, offset: before.length };
      const { body, headers } = await callFully('GET', 'agents', { query, signal });
      if (!isLatest()) return;
      const agents = [...before, ...body];
      const total = Number(headers.get('x-total-count'));
      const rows = agents.map((agent) => [
        h('a.name', { href: `#/agents/${agent.id}` }, agent.name),
        agent.scopes.map((scope) => [h('span.tag', {}, scope), ' ']),
        agent.webhook_url === null ? h('span.soft', {}, 'none') : h('code', {}, agent.webhook_url),
        when(agent.created_at),
      ]);
      put(
        results,
        table(
          'Agents',
          ['Name', wide('Scopes'), minor('Webhook'), 'Added'],
          rows,
          'None is called so.',
        ),
        h('p.soft', {}, `${count(total)} ${total === 1 ? 'agent' : 'agents'}`),
        total > agents.length && button('More', () => load(agents), '.small'),
      );
    } catch (error) {
      if (isLatest())
        put(
          results,
          failure(error, () => load(before)),
        );
    }
  }
  name.addEventListener(
    'input',
    settled(200, () => load(), signal),
  );
  put(
    place,
    heading('Agents'),
    h('div.row.filters', { role: 'search' }, labelled('Name', name)),
    results,
  );
  await load();
}

/** One agent: its scopes, its webhook, and the deliveries to it. */
export async function agentView(place, { id, signal }) {
  const deliveries = h('div');
  const about = h('div');
  const which = choice([['', 'any'], 'pending', 'delivered', 'failed'], '');
  const pages = new Pages();
  const nextTurn = turns(signal);
  const base = `agents/${id}`;

  async function load() {
    const agent = await call('GET', base, { signal });
    const { webhook_url } = agent;
    put(
      about,
      heading(
        agent.name,
        null,
        webhook_url !== null &&
          button('Send a test message', async () => {
            const went = await ask({
              title: 'Send a test message?',
              text: `To ${webhook_url}; it tells nothing.`,
              action: 'Send',
              fields: [reasonField],
              act: ({ reason }) => order(`${base}/webhook-test`, { reason }),
              done: 'The message is on its way.',
            });
            if (went) await list();
          }),
        h('a.button', { href: `#/audit?actor=${id}` }, 'What it did'),
      ),
      part(
        'Facts',
        facts(
          [
            'Scopes',
            agent.scopes.length === 0
              ? 'none'
              : agent.scopes.map((each) => [h('span.tag', {}, each), ' ']),
          ],
          ['Webhook', webhook_url === null ? 'none' : h('code', {}, webhook_url)],
          ['Added', moments(agent.created_at)],
          ['Changed', moments(agent.updated_at)],
          ['Id', h('code', {}, id)],
          ['Stream', h('a', { href: `#/streams/agent-${id}` }, 'Step through its events')],
        ),
      ),
    );
  }

  async function list() {
    const isLatest = nextTurn();
    try {
      const query = { state: which.value, limit: 25, cursor: pages.cursor };
      const page = await call('GET', `${base}/webhooks/deliveries`, { query, signal });
      if (!isLatest()) return;
      const rows = page.items.map(deliveryRow);
      const columns = ['When', 'What', 'State', num('Attempts'), wide('Latest answer'), ''];
      const empty = nothing(
        'Nothing was sent.',
        'Its webhook is told of the runs of its own tasks.',
      );
      put(
        deliveries,
        table('Deliveries', columns, rows, empty),
        pages.bar(page, 'delivery', list, 'deliveries'),
      );
    } catch (error) {
      if (isLatest()) put(deliveries, failure(error, list));
    }
  }

  function deliveryRow(delivery) {
    const { type, run_id, created_at, attempts, end, payload, next_attempt_at } = delivery;
    const last = attempts.at(-1);
    return [
      when(created_at),
      [type, run_id !== null && [' ', h('a', { href: `#/runs/${run_id}` }, run_id.slice(0, 8))]],
      [
        state(delivery.state),
        end !== null && h('p.hint', {}, end.replaceAll('_', ' ')),
        next_attempt_at !== null && h('p.hint', {}, 'again ', when(next_attempt_at)),
      ],
      String(attempts.length),
      h(
        'details',
        {},
        h(
          'summary',
          {},
          last === undefined ? 'not sent yet' : (last.error ?? `status ${last.status}`),
        ),
        attempts.map((each) => [
          h(
            'p.hint',
            {},
            moment(each.at),
            ` ${each.url ?? ''}, ${each.error ?? each.status}, ${duration(each.took_ms)}`,
          ),
          each.answer && lines(each.answer, 'Answer'),
        ]),
        json(payload, 'What was sent'),
      ),
      delivery.state !== 'pending' &&
        button('Send again', () => repeat(delivery), '.small', {
          'aria-label': `Send again: ${type}`,
        }),
    ];
  }

  async function repeat(delivery) {
    const went = await ask({
      title: 'Send it again?',
      text: 'The same message with the same id: who has taken it before should take no notice.',
      action: 'Send',
      fields: [reasonField],
      act: ({ reason }) => order(`${base}/webhooks/deliveries/${delivery.id}/repeat`, { reason }),
      done: 'It is sent again.',
    });
    if (went) await list();
  }

  which.addEventListener('input', () => {
    pages.reset();
    void list();
  });
  put(
    place,
    about,
    part('Webhook deliveries', h('div.row.filters', {}, labelled('State', which)), deliveries),
  );
  await Promise.all([load(), list()]);
}
