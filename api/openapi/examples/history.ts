import type { Examples } from '../examples.ts';
import {
  agentId,
  created,
  due,
  ended,
  eventId,
  message,
  position,
  runId,
  taskId,
} from './values.ts';

const stream = `task-${taskId}`;
const history = (type: string, changes: readonly object[]) => ({
  parameters: { cursor: '1' },
  responses: {
    200: {
      items: [
        {
          revision: 1,
          at: ended,
          actor: agentId,
          actor_name: 'shop',
          type,
          reason: 'less important',
          changes,
        },
      ],
      next_cursor: null,
    },
  },
});
const entry = {
  position,
  at: created,
  actor: agentId,
  actor_name: 'shop',
  source: '127.0.0.1',
  action: 'TaskCreated',
  type: 'TaskCreated',
  stream,
  task_title: 'Morning report',
  subject: null,
  revision: 0,
  reason: null,
  correlation_id: eventId,
  outcome: 'done',
  refusal: null,
  call: null,
};

export const historyExamples: Readonly<Record<string, Examples>> = {
  getTaskHistory: history('TaskUpdated', [{ path: 'priority', before: 5, after: 7 }]),
  getRunHistory: history('RunStarted', [{ path: 'state', before: 'queued', after: 'running' }]),
  getAgentHistory: history('AgentUpdated', [
    { path: 'scopes', before: ['tasks:read'], after: ['tasks:read', 'runs:read'] },
  ]),
  listStreams: {
    responses: {
      200: { items: [{ stream, revision: 1, last_at: ended }], next_cursor: null },
    },
  },
  readStream: {
    parameters: { from: 0 },
    responses: {
      200: {
        stream,
        items: [
          {
            stream,
            revision: 1,
            position,
            event_id: eventId,
            type: 'TaskPaused',
            data: {},
            metadata: { actor: agentId, source: '127.0.0.1', occurredAt: due },
            created_at: due,
          },
        ],
        next_from: null,
      },
    },
  },
  listAudit: { responses: { 200: { items: [entry], total: 1, next_cursor: null } } },
  watchAudit: {
    parameters: { stream: `run-${runId}`, type: 'RunStarted' },
    responses: { 200: message(position, 'audit', entry) },
  },
};
