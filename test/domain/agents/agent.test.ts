import { expect } from 'chai';
import {
  agentFold,
  agentNameFold,
  registerAgent,
  releaseName,
  removeAgent,
  requireAgent,
  reserveName,
  setCredentials,
  updateAgent,
} from '../../../domain/agents/agent.ts';
import type { AgentEvent, AgentNameEvent } from '../../../domain/events/catalogue.ts';
import { given, refused } from '../given.ts';

const fields = { name: 'sweeper', scopes: ['tasks:read'], webhook_url: null };
const registered: AgentEvent = { type: 'AgentRegistered', data: { ...fields } };
const removed: AgentEvent = { type: 'AgentRemoved', data: {} };
const abandoned: AgentEvent = { type: 'Abandoned', data: { reservation: 'agentname-x' } };
const secret = (secret_hash: string): AgentEvent => ({
  type: 'AgentCredentialsSet',
  data: { secret_hash },
});

describe('an agent', () => {
  describe('that does not exist', () => {
    it('is registered', () => {
      expect(registerAgent(given(agentFold, []), fields, null)).to.deep.equal([registered]);
    });

    it('is registered with its secret in one append', () => {
      expect(registerAgent(given(agentFold, []), fields, 'hash')).to.deep.equal([
        registered,
        secret('hash'),
      ]);
    });

    it('can be neither changed, given a secret, nor removed', () => {
      const state = given(agentFold, []);
      refused('NOT_FOUND', () => updateAgent(state, { name: 'other' }));
      refused('NOT_FOUND', () => setCredentials(state, 'hash'));
      refused('NOT_FOUND', () => removeAgent(state));
    });
  });

  describe('that is registered', () => {
    const state = given(agentFold, [registered, secret('first')]);

    it('has the fields of its registration, and the revision of its secret', () => {
      expect(state).to.deep.include({
        ...fields,
        status: 'registered',
        credentials: { secret_hash: 'first', revision: 1 },
        webhook_secret_version: 0,
        created_at: '2026-03-02T08:00:00.000Z',
        updated_at: '2026-03-02T08:00:00.000Z',
        revision: 1,
      });
    });

    it('is not registered again', () => {
      refused('STATE_CONFLICT', () => registerAgent(state, fields, null));
    });

    it('changes only what differs', () => {
      const changes = { name: 'sweeper', scopes: ['admin'], webhook_url: 'https://a.example/' };
      expect(updateAgent(state, changes)).to.deep.equal([
        {
          type: 'AgentUpdated',
          data: { changes: { scopes: ['admin'], webhook_url: 'https://a.example/' } },
        },
      ]);
      expect(updateAgent(state, fields)).to.deep.equal([]);
      expect(updateAgent(state, {})).to.deep.equal([]);
    });

    it('shows a change and its time', () => {
      const updated = given(agentFold, [
        registered,
        { type: 'AgentUpdated', data: { changes: { name: 'broom' } } },
      ]);
      expect(updated).to.include({ name: 'broom', updated_at: '2026-03-02T08:00:01.000Z' });
    });

    it('gets another secret, which has its own revision', () => {
      expect(setCredentials(state, 'second')).to.deep.equal([secret('second')]);
      const reset = requireAgent(given(agentFold, [registered, secret('first'), secret('second')]));
      expect(reset.credentials).to.deep.equal({ secret_hash: 'second', revision: 2 });
      expect(reset.updated_at).to.equal('2026-03-02T08:00:00.000Z');
    });

    it('counts the versions of its webhook secret', () => {
      const rotated = requireAgent(
        given(agentFold, [registered, { type: 'WebhookSecretRotated', data: { version: 3 } }]),
      );
      expect(rotated.webhook_secret_version).to.equal(3);
    });

    it('is removed', () => {
      expect(removeAgent(state)).to.deep.equal([removed]);
    });
  });

  describe('that was removed', () => {
    const state = given(agentFold, [registered, removed]);

    it('is gone permanently, except for its name', () => {
      expect(state).to.deep.equal({ status: 'removed', namespace: 'default', name: 'sweeper' });
      refused('STATE_CONFLICT', () => registerAgent(state, fields, null));
      refused('NOT_FOUND', () => updateAgent(state, { name: 'other' }));
      refused('NOT_FOUND', () => setCredentials(state, 'hash'));
      refused('NOT_FOUND', () => removeAgent(state));
    });
  });

  describe('whose registration was abandoned', () => {
    const state = given(agentFold, [abandoned]);

    it('can no longer be registered', () => {
      refused('STATE_CONFLICT', () => registerAgent(state, fields, 'hash'));
      refused('NOT_FOUND', () => removeAgent(state));
    });
  });
});

describe("an agent's name", () => {
  const reserved: AgentNameEvent = {
    type: 'NameReserved',
    data: { name: 'sweeper', agent_id: 'a' },
  };
  const released: AgentNameEvent = {
    type: 'NameReleased',
    data: { name: 'sweeper', agent_id: 'a' },
  };

  it('is reserved by the first', () => {
    expect(reserveName(given(agentNameFold, []), 'sweeper', 'a')).to.deep.equal([reserved]);
  });

  it('stays with its holder', () => {
    const state = given(agentNameFold, [reserved]);
    expect(state).to.deep.equal({ agent_id: 'a', since: '2026-03-02T08:00:00.000Z' });
    expect(reserveName(state, 'sweeper', 'a')).to.deep.equal([]);
    refused('STATE_CONFLICT', () => reserveName(state, 'sweeper', 'b'));
  });

  it('is released only by its holder', () => {
    const state = given(agentNameFold, [reserved]);
    expect(releaseName(state, 'sweeper', 'b')).to.deep.equal([]);
    expect(releaseName(state, 'sweeper', 'a')).to.deep.equal([released]);
    expect(releaseName(given(agentNameFold, [reserved, released]), 'sweeper', 'a')).to.deep.equal(
      [],
    );
  });

  it('is free again once it is released', () => {
    expect(
      reserveName(given(agentNameFold, [reserved, released]), 'sweeper', 'b'),
    ).to.have.lengthOf(1);
  });
});
