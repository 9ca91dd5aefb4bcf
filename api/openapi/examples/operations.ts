import type { Examples } from '../examples.ts';
import { agentId, created, done, due, ended, page, position, taskId } from './values.ts';

const hold = { reason: 'the database is being moved', by: agentId, by_name: 'shop', since: due };
const release = { by: agentId, by_name: 'shop', at: ended, missed: null };
const name = 'tasks';
const rebuilt = (message: string) => ({ responses: { 200: done(message, { name, version: 4 }) } });
const switched = (message: string, version: number, previous: number) => ({
  body: { expected_version: previous },
  responses: { 200: done(message, { name, version, previous, done: true }) },
});
const key = `task-${taskId}`;
const settled = (order: string) => ({
  parameters: { key },
  responses: {
    200: done('the key is no longer parked', { name, key, order, done: true, error: null }),
  },
});

export const operationsExamples: Readonly<Record<string, Examples>> = {
  getOperations: { responses: { 200: { held: true, hold, released: null } } },
  holdService: {
    body: { reason: hold.reason },
    responses: { 200: done('the service is on hold', { held: true, ...hold }) },
  },
  releaseService: {
    body: { missed: 'latest' },
    responses: {
      200: done('the hold has ended', { held: false, ...release, missed: 'latest' }),
    },
  },
  listProjections: {
    responses: {
      200: {
        projections: [
          {
            name,
            version: 3,
            schema: 1,
            state: 'following',
            position,
            lag_seconds: 0,
            caught_up: true,
            handled: 1742,
            parked: 0,
            rebuild: null,
            previous: null,
            detail: null,
          },
        ],
      },
    },
  },
  rebuildProjection: {
    body: { rate: 5000, switch: 'auto' },
    responses: {
      202: done('the next generation is being built', {
        name,
        version: 4,
        rate: 5000,
        switch: 'auto',
      }),
    },
  },
  pauseRebuild: rebuilt('the rebuild is paused'),
  resumeRebuild: rebuilt('the rebuild is resumed'),
  cancelRebuild: rebuilt('the rebuild is canceled'),
  switchProjection: switched('reads go to version 4', 4, 3),
  rollBackProjection: switched('reads go to version 3', 3, 4),
  listParkedKeys: {
    responses: {
      200: page({
        key,
        position,
        stream: key,
        type: 'TaskUpdated',
        error: 'changes.priority must be at most 9',
      }),
    },
  },
  retryParkedKey: settled('retry'),
  skipParkedKey: settled('skip'),
  listReplays: {
    responses: {
      200: {
        replays: [
          {
            name: 'november',
            state: 'ready',
            until: position,
            at: '2026-11-21T00:00:00.000Z',
            views: ['agents', 'tasks', 'runs'],
            rate: null,
            by: agentId,
            ordered_at: due,
            kept_until: '2026-11-30T08:00:00.000Z',
            progress: 1,
            events_per_second: 4100,
            documents: { agents: 3, tasks: 12, runs: 240 },
            error: null,
          },
        ],
      },
    },
  },
  createReplay: {
    body: { name: 'november', until: '2026-11-21T00:00:00Z', keep_hours: 168 },
    responses: {
      202: done(`the views as of ${created} are being built`, {
        name: 'november',
        until: position,
        at: created,
      }),
    },
  },
  deleteReplay: {
    parameters: { name: 'november' },
    responses: { 200: done('the replay is deleted', { name: 'november', done: true }) },
  },
};
