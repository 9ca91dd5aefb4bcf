import { newId } from '../../../domain/ids.ts';
import { long } from './refusal-parts.ts';
import type { Row } from './refusal-table.ts';

/** Invalid requests for sessions of the page, and for the sign-in of people, which this service does not offer. */
export const sessionRows: readonly Row[] = [
  {
    method: 'POST',
    path: '/auth/session',
    scope: null,
    body: { agent_id: newId(0), agent_secret: 'a secret of good length' },
    required: ['agent_id'],
    faults: [
      ['agent_id', 'x'],
      ['agent_secret', 5],
      ['password', 'x'],
    ],
  },
  { method: 'GET', path: '/auth/session', scope: null },
  { method: 'DELETE', path: '/auth/session', scope: null },
  {
    method: 'GET',
    path: '/auth/oidc/login',
    scope: null,
    queries: [
      ['view=//evil.example', 'view'],
      ['view=https:%22', 'view'],
      [`view=${long(501)}`, 'view'],
      ['return_to=https://evil.example', 'return_to'],
    ],
  },
  {
    method: 'GET',
    path: '/auth/oidc/callback',
    scope: null,
    queries: [
      ['state=a&state=b', 'state'],
      [`code=${long(4001)}`, 'code'],
    ],
  },
];
