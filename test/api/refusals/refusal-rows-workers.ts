import { long, pages } from './refusal-parts.ts';
import { newId } from '../../../domain/ids.ts';
import type { Row } from './refusal-table.ts';

const tool = { name: 'refused.tool', description: '', schema: {} };
const shared = { scope: 'jobs:work' } as const;
const job = { ...shared, method: 'POST', resource: 'job' } as const;
const faultyLeases: Row['faults'] = [
  ['lease', ''],
  ['lease', 5],
  ['lease', long(201)],
];

/** Invalid requests of workers. */
export const workerRows: readonly Row[] = [
  {
    ...shared,
    method: 'POST',
    path: '/workers',
    body: { name: 'refused', tools: [tool], slots: 1 },
    required: ['name', 'tools', 'slots'],
    faults: [
      ['name', ''],
      ['name', long(101)],
      ['tools', []],
      ['tools', [{ ...tool, name: 'with space' }], 'tools.0.name'],
      ['tools', [tool, tool], 'tools.1.name'],
      ['tools', [{ ...tool, schema: { type: 'nonsense' } }], 'tools.0.schema'],
      ['slots', 0],
      ['slots', 1.5],
      ['labels', { zone: 5 }, 'labels.zone'],
    ],
  },
  {
    method: 'GET',
    path: '/workers',
    scope: ['jobs:work', 'ops'],
    queries: [...pages, ['state=gone', 'state']],
  },
  {
    method: 'DELETE',
    path: '/workers/{worker}',
    scope: ['jobs:work', 'ops'],
    resource: 'worker',
  },
  {
    ...shared,
    method: 'POST',
    path: '/workers/{worker}/jobs',
    resource: 'worker',
    queries: [
      ['max=0', 'max'],
      ['max=101', 'max'],
      ['wait=61', 'wait'],
      ['wait=-1', 'wait'],
    ],
  },
  {
    ...job,
    path: '/jobs/{job}/heartbeat',
    body: { lease: 'x' },
    required: ['lease'],
    faults: [
      ...faultyLeases,
      ['progress', 2],
      ['log', [{ level: 'loud', message: 'x' }], 'log.0.level'],
    ],
  },
  {
    ...job,
    path: '/jobs/{job}/complete',
    body: { lease: 'x', result: 1 },
    required: ['lease', 'result'],
    faults: faultyLeases,
  },
  {
    ...job,
    path: '/jobs/{job}/fail',
    body: { lease: 'x', error: 'y', retryable: false },
    required: ['lease', 'error', 'retryable'],
    faults: [...faultyLeases, ['error', 5], ['retryable', 'no']],
  },
  {
    ...shared,
    method: 'POST',
    path: '/workers/{worker}/results',
    resource: 'worker',
    body: { results: [{ job_id: newId(0), lease: 'x', result: 1 }] },
    required: ['results'],
    faults: [
      ['results', []],
      ['results', 'x'],
    ],
  },
];
