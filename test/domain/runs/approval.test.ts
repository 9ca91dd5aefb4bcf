import { expect } from 'chai';
import { decisionEnd, mayDecide } from '../../../domain/runs/approval.ts';
import { endAtLimit } from '../../../domain/runs/wait-limits.ts';

describe('an approval', () => {
  const scoped =
    (...scopes: readonly string[]) =>
    (scope: string): boolean =>
      scopes.includes(scope);

  it('without approvers is decided by agents with the scope approvals:write', () => {
    expect(mayDecide(null, 'a', scoped('approvals:write'))).to.equal(true);
    expect(mayDecide(null, 'a', scoped('tasks:write'))).to.equal(false);
  });

  it('with approvers is decided only by them, named by id or by scope', () => {
    const approvers = ['A', 'scope:payments'];
    expect(mayDecide(approvers, 'a', scoped())).to.equal(true);
    expect(mayDecide(approvers, 'b', scoped('payments'))).to.equal(true);
    expect(mayDecide(approvers, 'b', scoped('approvals:write'))).to.equal(false);
    expect(mayDecide(['scope:'], 'b', scoped('approvals:write'))).to.equal(false);
  });

  it('that is rejected has an error for people and a result for later steps', () => {
    const agent = { id: 'a', name: 'ada' };
    const end = decisionEnd({ approved: false, agent, comment: 'too much' }, 0);
    expect(end).to.deep.equal({
      by: { kind: 'approval', agent_id: 'a' },
      result: { approved: false, by: 'a', comment: 'too much', at: '1970-01-01T00:00:00.000Z' },
      error: 'rejected by ada: too much',
      retryable: false,
    });
  });

  it('that nobody decided ends according to its on_timeout', () => {
    const wait = (on_timeout: 'fail' | 'reject' | 'approve') => ({
      step: 'a',
      wait_id: 'w',
      attempt: 1,
      resumed: null,
      waits_for: { kind: 'approval' as const, message: 'm', on_timeout },
      since: '1970-01-01T00:00:00.000Z',
      until: '1970-01-01T00:00:10.000Z',
    });
    expect(endAtLimit(wait('fail'), 10_000)).to.deep.include({
      error: 'nobody decided within 10 s',
    });
    expect(endAtLimit(wait('fail'), 10_000)).not.to.have.property('result');
    const rejected = endAtLimit(wait('reject'), 10_000);
    expect(rejected.error).to.equal('rejected: nobody decided within 10 s');
    expect(rejected.result).to.include({ approved: false, by: null });
    const approved = endAtLimit(wait('approve'), 10_000);
    expect(approved.result).to.include({ approved: true, by: null });
    expect(approved).not.to.have.property('error');
  });
});
