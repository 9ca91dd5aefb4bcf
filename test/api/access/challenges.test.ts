import type { Response } from 'express';
import { expect } from 'chai';
import { challengeFor, challengeOf } from '../../../api/access/challenges.ts';

describe('the challenge of a refusal', () => {
  const response = () => ({ locals: {} }) as Response;

  it('names one scope if any of several is enough', () => {
    const scopes = ['runs:read', 'tasks:read'];
    const challenge = challengeOf(response(), 403, scopes);
    expect(challenge).to.equal('Bearer error="insufficient_scope", scope="runs:read"');
  });

  it('names no scope if none is missing, or if a header cannot hold its name', () => {
    const cases: readonly unknown[] = [['a"b'], ['a\r\nb: c'], ['a b'], [5], [], 'x', undefined];
    for (const scopes of cases) expect(challengeOf(response(), 403, scopes)).to.equal(undefined);
  });

  it('does not change other responses', () => {
    const about = response();
    challengeFor(about, { metadata: 'https://tasks.example/metadata', hasToken: true });
    expect(challengeOf(about, 404, ['tasks:read'])).to.equal(undefined);
    expect(challengeOf(response(), 401, ['tasks:read'])).to.equal(undefined);
  });
});
