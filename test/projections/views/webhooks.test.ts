import { expect } from 'chai';
import {
  webhookDueAt,
  webhooksOf,
  webhooksProjection,
} from '../../../projections/views/webhooks.ts';
import { LogOfTest, folded } from '../recorded.ts';

const retryAt = '2026-03-01T08:10:00.000Z';
const failed = {
  attempt: 1,
  secret_version: 1,
  took_ms: 3,
  url: 'https://a.example/',
  status: 500,
  error: 'the receiver answered 500',
  answer: 'oh',
  retry_at: retryAt,
  end: null,
};

describe('a delivery in the webhooks view', () => {
  let log: LogOfTest;
  const delivery = () => folded(webhooksProjection, log.events).get('1');

  beforeEach(() => {
    log = new LogOfTest();
    log.add('webhook-1', 'WebhookScheduled', {
      agent_id: 'a',
      event_id: 'e',
      task_id: 't',
      run_id: 'r',
      payload: { type: 'run.failed', timestamp: retryAt, data: { run_id: 'r' } },
    });
  });

  it('is pending from the start', () => {
    expect(delivery()).to.deep.include({
      id: '1',
      agent_id: 'a',
      type: 'run.failed',
      run_id: 'r',
      state: 'pending',
      end: null,
      attempts: [],
      created_at: '2026-03-01T08:00:01.000Z',
      next_attempt_at: '2026-03-01T08:00:01.000Z',
      finished_at: null,
    });
  });

  it('says when it was sent again', () => {
    log.add('webhook-1', 'WebhookFailed', failed);
    expect(delivery()).to.not.have.property('resent_at');
    log.add('webhook-1', 'WebhookFailed', { ...failed, attempt: 2 });
    expect(delivery()).to.include({ resent_at: '2026-03-01T08:00:03.000Z' });
  });

  it('says when it is retried, and the result of each attempt', () => {
    log.add('webhook-1', 'WebhookFailed', failed);
    const document = delivery();
    const { retry_at: _retryAt, end: _end, ...attempt } = failed;
    expect(document).to.deep.include({
      state: 'pending',
      next_attempt_at: retryAt,
      attempts: [{ at: '2026-03-01T08:00:02.000Z', ...attempt }],
    });
    expect(document && webhookDueAt(document)).to.equal(Date.parse(retryAt));
  });

  it('says why it is not retried, until it is repeated', () => {
    log.add('webhook-1', 'WebhookFailed', { ...failed, retry_at: null, end: 'expired' });
    expect(delivery()).to.include({ state: 'failed', end: 'expired', next_attempt_at: null });
    expect(delivery()?.finished_at).to.equal('2026-03-01T08:00:02.000Z');
    log.add('webhook-1', 'WebhookRepeated', {});
    expect(delivery()).to.include({ state: 'pending', end: null, finished_at: null, repeats: 1 });
    expect(delivery()?.attempts).to.have.length(1);
  });

  it('keeps the latest attempts, however many there were', () => {
    for (let attempt = 1; attempt <= 40; attempt += 1) {
      log.add('webhook-1', 'WebhookFailed', { ...failed, attempt });
    }
    const numbers = delivery()?.attempts.map(({ attempt }) => attempt);
    expect(numbers).to.deep.equal(Array.from({ length: 25 }, (_, n) => n + 16));
  });

  it('is found by its agent, state and type', () => {
    expect(webhooksOf('a', { state: 'failed', type: 'run.failed' }).filters).to.deep.equal([
      { field: 'agent_id', op: 'eq', value: 'a' },
      { field: 'state', op: 'eq', value: 'failed' },
      { field: 'type', op: 'eq', value: 'run.failed' },
    ]);
  });
});
