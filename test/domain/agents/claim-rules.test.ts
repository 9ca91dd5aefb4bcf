import { expect } from 'chai';
import { grantOf, personName, type ClaimRule } from '../../../domain/agents/claim-rules.ts';

const scopes = ['tasks:read'];
const matches = (rule: Omit<ClaimRule, 'scopes'>, claims: object): boolean =>
  grantOf([{ ...rule, scopes }], claims as Record<string, unknown>) !== null;

describe('a rule of claims', () => {
  it('matches a value, or an item of a list, exactly', () => {
    const rule = { claim: ['groups'], is: 'ops' };
    expect(matches(rule, { groups: 'ops' })).to.equal(true);
    expect(matches(rule, { groups: ['dev', 'ops'] })).to.equal(true);
    for (const groups of ['ops2', 'Ops', ['op'], [['ops']], { ops: true }, null, undefined]) {
      expect(matches(rule, { groups }), JSON.stringify(groups)).to.equal(false);
    }
    expect(matches({ claim: ['level'], is: 3 }, { level: '3' })).to.equal(false);
  });

  it('follows a path, but not into what an object inherits', () => {
    const rule = { claim: ['realm_access', 'roles'], is: 'ops' };
    expect(matches(rule, { realm_access: { roles: ['ops'] } })).to.equal(true);
    expect(matches(rule, { realm_access: null })).to.equal(false);
    expect(matches({ claim: ['constructor', 'name'], is: 'Object' }, {})).to.equal(false);
    expect(
      matches(
        { claim: ['https://a.example/roles'], is: 'x' },
        { 'https://a.example/roles': ['x'] },
      ),
    ).to.equal(true);
  });

  it('without a value needs the claim, and without a claim matches everyone', () => {
    expect(matches({ claim: ['hd'] }, { hd: 'a.example' })).to.equal(true);
    for (const hd of [undefined, null, false])
      expect(matches({ claim: ['hd'] }, { hd })).to.equal(false);
    expect(matches({}, {})).to.equal(true);
  });

  it('about an email address matches only if the address was verified', () => {
    const rule = { claim: ['email'], is: 'a@a.example' };
    expect(matches(rule, { email: 'a@a.example', email_verified: true })).to.equal(true);
    for (const email_verified of [false, undefined, 'true', 1]) {
      expect(matches(rule, { email: 'a@a.example', email_verified })).to.equal(false);
    }
  });

  it('adds its scopes to those of the other rules, in the namespace of the first matching rule', () => {
    const rules = [
      { claim: ['g'], is: 'a', scopes: ['x', 'b'], namespace: 'one' },
      { claim: ['g'], is: 'b', scopes: ['admin'] },
      { claim: ['g'], is: 'c', scopes: ['a', 'b'], namespace: 'one' },
    ];
    expect(grantOf(rules, { g: ['c', 'b', 'a'] })).to.deep.equal({
      namespace: 'one',
      scopes: ['a', 'b', 'x'],
    });
    expect(grantOf(rules, { g: ['b', 'c'] })).to.deep.equal({
      namespace: 'default',
      scopes: ['admin'],
    });
    expect(grantOf(rules, { g: ['d'] })).to.equal(null);
  });
});

describe('the name of a person', () => {
  it('is the best one among the claims, on one line', () => {
    expect(personName({ sub: '1', name: 'Ada L', preferred_username: 'ada' })).to.equal('ada');
    expect(personName({ sub: '1', preferred_username: ' \n', name: 'Ada\u202e\n L ' })).to.equal(
      'Ada L',
    );
    expect(personName({ sub: '1', name: 5 })).to.equal('1');
    expect(personName({ sub: '\u0000' })).to.equal('person');
    expect([...personName({ sub: '😀'.repeat(200) })]).to.have.length(80);
  });
});
