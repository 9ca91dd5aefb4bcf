import type { Examples } from '../examples.ts';
import { created, done } from './values.ts';

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
};
