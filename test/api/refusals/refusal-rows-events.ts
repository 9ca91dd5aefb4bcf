import { newId } from '../../../domain/ids.ts';
import { long } from './refusal-parts.ts';
import type { Row } from './refusal-table.ts';

/** Publishing, and reading publications. */
export const eventRows: readonly Row[] = [
  {
    method: 'POST',
    path: '/events',
    scope: 'events:publish',
    body: { topic: 'a.b', payload: {}, source_agent_id: newId(0) },
    required: ['topic', 'payload', 'source_agent_id'],
    faults: [
      ['topic', ''],
      ['topic', 'a b'],
      ['topic', long(201)],
      ['topic', 5],
      ['payload', []],
      ['payload', null],
      ['payload', 'x'],
      ['source_agent_id', 'x'],
      ['source_agent_id', newId(0)],
      ['extra', 1],
    ],
  },
  {
    method: 'GET',
    path: '/topics',
    scope: 'tasks:read',
    queries: [
      ['after=x', 'after'],
      ['limit=201', 'limit'],
      ['offset=-1', 'offset'],
      ['cursor=x', 'cursor'],
      ['matching=a.*', 'matching'],
    ],
  },
  { method: 'GET', path: '/events/topics', scope: 'tasks:read' },
  {
    method: 'GET',
    path: '/events',
    scope: 'events:read',
    queries: [
      ['limit=0', 'limit'],
      ['limit=201', 'limit'],
      ['cursor=x', 'cursor'],
      ['topic=', 'topic'],
      ['topic=a%20b', 'topic'],
      [`topic=${long(201)}`, 'topic'],
      ['after=x', 'after'],
    ],
  },
  {
    method: 'GET',
    path: '/events/{event}',
    scope: 'events:read',
    resource: 'event',
    queries: [['after=x', 'after']],
  },
  ...['/stream/recent', '/events/stream/recent'].map((path): Row => ({
    method: 'GET',
    path,
    scope: 'events:read',
    queries: [
      ['count=0', 'count'],
      ['count=1001', 'count'],
      ['count=all', 'count'],
      ['topic=', 'topic'],
      ['topic=a%20b', 'topic'],
      [`topic=${long(201)}`, 'topic'],
      ['after=x', 'after'],
    ],
  })),
  ...['/stream/cleanup', '/events/stream/cleanup'].map((path): Row => ({
    method: 'DELETE',
    path,
    scope: 'admin',
    queries: [
      ['max_age_hours=0', 'max_age_hours'],
      ['max_age_hours=-1', 'max_age_hours'],
      ['max_age_hours=old', 'max_age_hours'],
      ['max_age_hours=Infinity', 'max_age_hours'],
      ['max_age_hours=1000001', 'max_age_hours'],
    ],
  })),
];
