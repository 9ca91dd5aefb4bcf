import type { Examples } from '../examples.ts';
import { created, done, ended } from './values.ts';

const reports = {
  name: 'reports',
  description: 'Tasks of the reporting team',
  created_at: created,
  updated_at: created,
  quotas: { weight: 2, tasks: 50 },
  quota_bounds: { weight: 2, tasks: 100 },
  own_quotas: { tasks: 50 },
};
const unset = { quotas: {}, quota_bounds: {}, own_quotas: {} };
const otherwise = {
  name: 'default',
  description: null,
  created_at: null,
  updated_at: null,
  ...unset,
};
const named = { parameters: { name: 'reports' } };

export const namespaceExamples: Readonly<Record<string, Examples>> = {
  createNamespace: {
    body: { name: 'reports', description: reports.description, quotas: reports.quota_bounds },
    responses: { 201: { ...reports, quotas: reports.quota_bounds, own_quotas: {} } },
  },
  listNamespaces: { responses: { 200: { items: [otherwise, reports], next_cursor: null } } },
  getNamespace: { ...named, responses: { 200: reports } },
  updateNamespace: {
    ...named,
    body: { description: reports.description, quotas: reports.own_quotas },
    responses: { 200: reports },
  },
  deleteNamespace: {
    ...named,
    responses: { 200: done('the namespace is deleted', { name: 'reports' }) },
  },
  getNamespaceUsage: {
    parameters: { name: 'default' },
    responses: {
      200: {
        namespace: 'default',
        weight: 1,
        unfinished_runs: 12,
        quotas: [
          { quota: 'tasks', used: 40, limit: 100, frees_at: null },
          { quota: 'agents', used: 3, limit: null, frees_at: null },
          { quota: 'topics', used: 12, limit: null, frees_at: null },
          { quota: 'events', used: 81_204, limit: 1_000_000, frees_at: null },
          { quota: 'artifact_bytes', used: 0, limit: null, frees_at: null },
          { quota: 'runs_per_minute', used: 600, limit: 600, frees_at: ended },
          { quota: 'payload_bytes_per_minute', used: 18_200, limit: null, frees_at: null },
        ],
      },
    },
  },
};
