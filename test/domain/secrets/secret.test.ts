import { expect } from 'chai';
import type { SealedValue } from '../../../domain/secrets/secret-cipher.ts';
import {
  deleteSecret,
  requireSecret,
  resealSecret,
  sealingContext,
  secretFold,
  setSecret,
  type SecretEvent,
  type SecretState,
} from '../../../domain/secrets/secret.ts';

const sealed = (value: string): SealedValue => ({ key_id: 'k1', data_key: 'd1', value });
const at = (revision: number) =>
  ({ revision, metadata: { occurredAt: `2026-03-01T09:00:0${revision}.000Z` } }) as never;
const fold = (...events: readonly SecretEvent[]): SecretState =>
  events.reduce(
    (state, event, index) => secretFold.evolve(state, event, at(index)),
    secretFold.initial,
  );
const limits = { allow_hosts: ['a.example'], allow_tasks: null, expires_at: null };
const set = (state: SecretState, namespace = 'default'): readonly SecretEvent[] =>
  setSecret(state, { namespace, name: 'X', ...limits }, sealed);

describe('a secret of a namespace', () => {
  it('has versions, whose numbers continue after it was deleted', () => {
    const first = set(secretFold.initial);
    const second = set(fold(...first));
    expect(second[0]?.data).to.include({ version: 2 });
    const gone = [...first, ...second, ...deleteSecret(fold(...first, ...second))];
    expect(fold(...gone)).to.deep.equal({ status: 'deleted', version: 2 });
    expect(set(fold(...gone))[0]?.data).to.include({ version: 3 });
    expect(() => requireSecret(fold(...gone), 'X')).to.throw('there is no secret X');
    expect(deleteSecret(fold(...gone))).to.deep.equal([]);
  });

  it('names its namespace, except default', () => {
    expect(set(secretFold.initial)[0]?.data).not.to.have.property('namespace');
    expect(set(secretFold.initial, 'team-a')[0]?.data).to.include({ namespace: 'team-a' });
    expect(fold(...set(secretFold.initial))).to.include({ namespace: 'default' });
  });

  it('is encrypted for its namespace, name, version and limits', () => {
    const [event] = set(secretFold.initial);
    const state = requireSecret(fold(...set(secretFold.initial)), 'X');
    expect(event?.type === 'SecretSet' && event.data.sealed.value).to.equal(sealingContext(state));
    const others = [
      { ...state, namespace: 'team-a' },
      { ...state, name: 'Y' },
      { ...state, version: 2 },
      { ...state, allow_hosts: ['*'] },
      { ...state, allow_tasks: ['t'] },
      { ...state, expires_at: '2026-04-01T09:00:00.000Z' },
      { ...state, expires_at: '2027-04-01T09:00:00.000Z' },
    ];
    const contexts = new Set([state, ...others].map(sealingContext));
    expect(contexts.size).to.equal(others.length + 1);
  });

  it('is encrypted as in older releases if it never expires', () => {
    const state = requireSecret(fold(...set(secretFold.initial)), 'X');
    expect(sealingContext(state)).to.equal('["default","X",1,["a.example"],null]');
  });

  it('gets its data key encrypted again, unless a new version came first', () => {
    const events = set(secretFold.initial);
    const resealed = resealSecret(fold(...events), (old) => ({
      ...old,
      key_id: 'k2',
      data_key: 'd2',
    }));
    const after = requireSecret(fold(...events, ...resealed), 'X');
    expect(after.sealed).to.include({ key_id: 'k2', data_key: 'd2' });
    const second = set(fold(...events));
    const overtaken = requireSecret(fold(...events, ...second, ...resealed), 'X');
    expect(overtaken.sealed).to.include({ key_id: 'k1' });
    expect(resealSecret(fold(...events), () => null)).to.deep.equal([]);
    expect(resealSecret(secretFold.initial, (old) => old)).to.deep.equal([]);
  });
});
