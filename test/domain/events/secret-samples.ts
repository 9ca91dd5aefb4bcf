import type { DataOf } from '../../../domain/events/catalogue.ts';

const at = '2026-03-01T09:00:00.000Z';
const sealed = { key_id: '0123456789abcdef', data_key: 'AAAA', value: 'AAAA' };

/** Samples of the events of secrets. */
export const secretSamples = (
  id: string,
): {
  readonly SecretSet: readonly DataOf<'SecretSet'>[];
  readonly SecretResealed: readonly DataOf<'SecretResealed'>[];
  readonly SecretDeleted: readonly DataOf<'SecretDeleted'>[];
  readonly SecretUsed: readonly DataOf<'SecretUsed'>[];
} => ({
  SecretSet: [
    { name: 'API_TOKEN', version: 1, sealed, allow_hosts: [], allow_tasks: null, expires_at: null },
    {
      namespace: 'team-a',
      name: 'API_TOKEN',
      version: 2,
      sealed,
      allow_hosts: ['api.example.com:443', '*'],
      allow_tasks: [id],
      expires_at: at,
    },
  ],
  SecretResealed: [{ version: 1, key_id: 'fedcba9876543210', data_key: 'BBBB' }],
  SecretDeleted: [{}],
  SecretUsed: [
    {
      agent_id: id,
      secret_id: id,
      name: 'API_TOKEN',
      secret_version: 1,
      source: 'store',
      task_id: id,
      run_id: id,
      step: 'a',
      count: 1,
      first_at: at,
      last_at: at,
    },
    {
      agent_id: id,
      namespace: 'team-a',
      secret_id: id,
      name: 'API_TOKEN',
      secret_version: null,
      source: 'environment',
      task_id: null,
      run_id: null,
      step: null,
      count: 70,
      first_at: at,
      last_at: at,
    },
  ],
});
