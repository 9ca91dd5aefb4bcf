import { cursors, pages } from './refusal-parts.ts';
import type { Row } from './refusal-table.ts';

/** Commands to the whole service. */
export const operationsRows: readonly Row[] = [
  { method: 'GET', path: '/operations', scope: 'ops' },
  {
    method: 'POST',
    path: '/operations/hold',
    scope: 'ops',
    body: { reason: 'maintenance' },
    required: ['reason'],
    faults: [
      ['reason', ''],
      ['reason', 5],
      ['until', 'tomorrow'],
    ],
  },
  {
    method: 'POST',
    path: '/operations/release',
    scope: 'ops',
    body: {},
    faults: [
      ['missed', 'some'],
      ['reason', 5],
    ],
  },
  { method: 'GET', path: '/replays', scope: 'ops' },
  {
    method: 'POST',
    path: '/replays',
    scope: 'ops',
    body: { name: 'friday', until: '2099-01-01T00:00:00Z' },
    required: ['name', 'until'],
    faults: [
      ['name', 'Friday'],
      ['name', ''],
      ['until', 'friday'],
      ['until', '2000-01-01T00:00:00Z'],
      ['rate', 0],
      ['keep_hours', 0],
      ['keep_hours', 721],
      ['views', ['runs']],
    ],
  },
  { method: 'DELETE', path: '/replays/{name}', scope: 'ops' },
  { method: 'GET', path: '/projections', scope: 'ops' },
  {
    method: 'POST',
    path: '/projections/{projection}/rebuild',
    scope: 'ops',
    body: {},
    faults: [
      ['rate', 0],
      ['rate', 'fast'],
      ['switch', 'later'],
      ['version', 3],
    ],
  },
  ...['switch', 'rollback'].map((verb): Row => {
    const path = `/projections/{projection}/${verb}`;
    const faults: Row['faults'] = [
      ['expected_version', -1],
      ['expected_version', 'live'],
      ['version', 3],
    ];
    return { method: 'POST', path, scope: 'ops', body: {}, faults };
  }),
  ...['pause', 'resume', 'cancel'].map((verb): Row => {
    return { method: 'POST', path: `/projections/{projection}/${verb}`, scope: 'ops' };
  }),
  {
    method: 'GET',
    path: '/projections/{projection}/parked',
    scope: 'ops',
    queries: [...pages.filter(([, field]) => field !== 'after'), ...cursors],
  },
  { method: 'POST', path: '/projections/{projection}/parked/{key}/retry', scope: 'ops' },
  { method: 'POST', path: '/projections/{projection}/parked/{key}/skip', scope: 'ops' },
];
