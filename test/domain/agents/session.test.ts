import { expect } from 'chai';
import type { SessionEvent } from '../../../domain/events/catalogue.ts';
import { endSession, refreshSession, sessionFold } from '../../../domain/agents/session.ts';
import { given, refused } from '../given.ts';

const expires_at = '2026-04-01T00:00:00.000Z';
const started: SessionEvent = {
  type: 'SessionStarted',
  data: { agent_id: 'a', refresh_id: 'first', expires_at, credentials_revision: 1 },
};
const refreshed: SessionEvent = {
  type: 'SessionRefreshed',
  data: { refresh_id: 'second', expires_at },
};
const ended: SessionEvent = { type: 'SessionEnded', data: { reason: 'revoked' } };
const next = { refresh_id: 'third', expires_at };

describe('a session', () => {
  it('begins with the credentials of its agent', () => {
    expect(given(sessionFold, [started])).to.deep.include({
      status: 'open',
      refresh_id: 'first',
      credentials_revision: 1,
    });
  });

  it('exchanges the valid refresh token', () => {
    expect(refreshSession(given(sessionFold, [started]), 'first', next)).to.deep.equal({
      events: [{ type: 'SessionRefreshed', data: next }],
      reused: false,
    });
  });

  it('ends when a used refresh token comes back', () => {
    const outcome = refreshSession(given(sessionFold, [started, refreshed]), 'first', next);
    expect(outcome).to.deep.equal({
      events: [{ type: 'SessionEnded', data: { reason: 'reuse' } }],
      reused: true,
    });
  });

  it('refreshes nothing once it has ended, or before it began', () => {
    const state = given(sessionFold, [started, refreshed, ended]);
    refused('STATE_CONFLICT', () => refreshSession(state, 'second', next));
    refused('STATE_CONFLICT', () => refreshSession(given(sessionFold, []), 'first', next));
  });

  it('is ended once, and only if it is open', () => {
    expect(endSession(given(sessionFold, [started]))).to.deep.equal([ended]);
    expect(endSession(given(sessionFold, [started, ended]))).to.deep.equal([]);
    expect(endSession(given(sessionFold, []))).to.deep.equal([]);
  });
});
