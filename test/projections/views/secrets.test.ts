import { expect } from 'chai';
import { auditDocumentOf } from '../../../projections/views/audit.ts';
import { secretsProjection } from '../../../projections/views/secrets.ts';
import { LogOfTest, folded } from '../recorded.ts';

const sealed = { key_id: 'k1', data_key: 'ZGF0YSBrZXk=', value: 'c2VhbGVk' };
const set = {
  name: 'X',
  version: 1,
  sealed,
  allow_hosts: ['a.example'],
  allow_tasks: null,
  expires_at: '2026-04-01T09:00:00.000Z',
};
const used = (last_at: string, more: object = {}) => ({
  agent_id: 'a',
  secret_id: '1',
  name: 'X',
  secret_version: 1,
  source: 'store',
  task_id: 't',
  run_id: 'r',
  step: 's',
  count: 1,
  first_at: last_at,
  last_at,
  ...more,
});

describe('a secret in its view', () => {
  let log: LogOfTest;
  const secret = () => folded(secretsProjection, log.events).get('1');

  beforeEach(() => {
    log = new LogOfTest();
    log.add('secret-1', 'SecretSet', set);
  });

  it('has no value, not even an encrypted one', () => {
    expect(JSON.stringify(secret())).not.to.match(/c2VhbGVk|ZGF0YS/);
    expect(secret()).to.include({ name: 'X', version: 1, key_id: 'k1' });
    expect(secret()).to.include({ expires_at: '2026-04-01T09:00:00.000Z' });
  });

  it('has the key that encrypts it, and its last use', () => {
    log.add('secret-1', 'SecretResealed', { version: 1, key_id: 'k2', data_key: 'x' });
    log.add('uses-a-2026-03-01', 'SecretUsed', used('2026-03-01T10:00:00.000Z'));
    log.add('uses-b-2026-03-01', 'SecretUsed', used('2026-03-01T09:00:00.000Z', { task_id: 'u' }));
    const last = { at: '2026-03-01T10:00:00.000Z', version: 1, task_id: 't', run_id: 'r' };
    expect(secret()).to.deep.include({ key_id: 'k2', last_used: last, revision: 1 });
    log.add('secret-1', 'SecretSet', { ...set, version: 2 });
    expect(secret()).to.deep.include({ version: 2, last_used: last });
  });

  it('is gone once it is deleted, and does not appear because of uses of other backends', () => {
    log.add('secret-1', 'SecretDeleted', {});
    log.add('uses-a-2026-03-01', 'SecretUsed', used('2026-03-01T10:00:00.000Z'));
    expect(secret() ?? null).to.equal(null);
  });

  it('appears in the audit with each use', () => {
    log.add('uses-a-2026-03-01', 'SecretUsed', used('2026-03-01T10:00:00.000Z'));
    const [, event] = log.events;
    const use = event && auditDocumentOf(event);
    expect(use).to.deep.include({ action: 'use secret X', outcome: 'done' });
    expect(use?.use).to.include({ name: 'X', version: 1, source: 'store', task_id: 't', count: 1 });
  });
});
