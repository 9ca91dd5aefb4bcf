import type { Examples } from '../examples.ts';
import { created, done, ended } from './values.ts';

const reports = {
  name: 'reports',
  description: 'Everything of the reporting team',
  created_at: created,
  updated_at: created,
};
const otherwise = { name: 'default', description: null, created_at: null, updated_at: null };
const named = { parameters: { name: 'reports' } };

export const namespaceExamples: Readonly<Record<string, Examples>> = {
  createNamespace: {
    body: { name: 'reports', description: reports.description },
    responses: { 201: reports },
  },
  listNamespaces: { responses: { 200: { items: [otherwise, reports], next_cursor: null } } },
  getNamespace: { ...named, responses: { 200: reports } },
  updateNamespace: {
    ...named,
    body: { description: reports.description },
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
          { quota: 'runs_per_minute', used: 600, limit: 600, frees_at: ended },
          { quota: 'payload_bytes_per_minute', used: 18_200, limit: null, frees_at: null },
        ],
      },
    },
  },
};
