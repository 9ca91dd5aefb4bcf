import { expect } from 'chai';
import { agentFilters, agentsProjection } from '../../../projections/views/agents.ts';
import { LogOfTest, folded } from '../recorded.ts';

const fields = { name: 'ada', scopes: ['tasks:read'], webhook_url: null };

describe('an agent in the agents view', () => {
  let log: LogOfTest;
  const agent = () => folded(agentsProjection, log.events).get('1');

  beforeEach(() => {
    log = new LogOfTest();
    log.add('agent-1', 'AgentRegistered', fields);
  });

  it('has the fields of its registration', () => {
    expect(agent()).to.deep.equal({
      id: '1',
      ...fields,
      created_at: '2026-03-01T08:00:01.000Z',
      updated_at: '2026-03-01T08:00:01.000Z',
      revision: 0,
      credentials_revision: null,
      webhook_secret_version: 0,
      disabled: null,
    });
  });

  it('takes over changes, and only those', () => {
    log.add('agent-1', 'AgentUpdated', { changes: { scopes: [] } });
    expect(agent()).to.deep.include({
      name: 'ada',
      scopes: [],
      revision: 1,
      updated_at: '2026-03-01T08:00:02.000Z',
    });
  });

  it('names the event that set its secret, but never the secret', () => {
    log.add('agent-1', 'AgentCredentialsSet', { secret_hash: 'scrypt$hash' });
    expect(agent()?.credentials_revision).to.equal(1);
    expect(JSON.stringify(agent())).not.to.contain('hash');
  });

  it('is gone after its removal, and is not created by other streams', () => {
    log.add('agentname-1', 'NameReserved', { name: 'ada', agent_id: '1' });
    log.add('agent-1', 'AgentRemoved', {});
    expect([...folded(agentsProjection, log.events)]).to.deep.equal([]);
  });

  it('is found by a part of its name and by a scope', () => {
    expect(agentFilters('*', { name: 'a', scope: 'ops' }).map(({ op }) => op)).to.deep.equal([
      'contains',
      'has',
    ]);
    expect(agentFilters('*', {})).to.deep.equal([]);
  });
});
