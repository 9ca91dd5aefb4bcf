import { expect } from 'chai';
import { fromIso } from '../../../domain/clock.ts';
import type { DataOf, WebhookEvent } from '../../../domain/events/catalogue.ts';
import {
  recordAttempt,
  repeatWebhook,
  scheduleWebhook,
  DELIVERY_LIFETIME,
  webhookDeliveryId,
  webhookFold,
  type KnownWebhook,
  type AttemptResult,
} from '../../../domain/webhooks/webhook.ts';
import { given, place, refused, START } from '../given.ts';

const scheduled: DataOf<'WebhookScheduled'> = {
  agent_id: 'agent-1',
  event_id: 'event-1',
  task_id: 'task-1',
  run_id: 'run-1',
  payload: { type: 'run.failed', timestamp: '2026-03-02T08:00:00.000Z', data: {} },
};
const begun: WebhookEvent = { type: 'WebhookScheduled', data: scheduled };

const answer = (more: Partial<AttemptResult> = {}): AttemptResult => ({
  url: 'https://a.example/',
  secretVersion: 1,
  status: 500,
  answer: 'oh',
  error: null,
  took: 7,
  retryAfter: undefined,
  end: null,
  ...more,
});

/** Folds events into a delivery. */
function known(...events: readonly WebhookEvent[]): KnownWebhook {
  const state = given(webhookFold, [begun, ...events]);
  if (!('scheduled' in state)) throw new Error('there is no delivery');
  return state;
}

/** The data of the first event, a failed attempt. */
function failed(events: readonly WebhookEvent[]): DataOf<'WebhookFailed'> {
  const [event] = events;
  if (event?.type !== 'WebhookFailed') throw new Error('it has not failed');
  return event.data;
}

describe('a webhook delivery', () => {
  it('has an id derived from the event and the agent', () => {
    const id = webhookDeliveryId('event-1', 'agent-1');
    expect(webhookDeliveryId('event-1', 'agent-1')).to.equal(id);
    expect(webhookDeliveryId('event-1', 'agent-2')).to.not.equal(id);
    expect(webhookDeliveryId('event-2', 'agent-1')).to.not.equal(id);
  });

  it('is scheduled once', () => {
    expect(scheduleWebhook({ state: 'none' }, scheduled)).to.deep.equal([begun]);
    expect(scheduleWebhook(known(), scheduled)).to.deep.equal([]);
    expect(known()).to.include({ state: 'pending', attempts: 0, since: START, dueAt: START });
  });

  for (const status of [200, 202, 204]) {
    it(`is delivered by ${status}`, () => {
      const events = recordAttempt('d', known(), answer({ status, answer: 'ok' }), START);
      const url = 'https://a.example/';
      const data = { attempt: 1, secret_version: 1, took_ms: 7, url, status, answer: 'ok' };
      expect(events).to.deep.equal([{ type: 'WebhookDelivered', data }]);
      expect(known(...events)).to.include({ state: 'delivered', attempts: 1 });
    });
  }

  for (const status of [301, 400, 401, 404, 429, 500, 503, 999]) {
    it(`is retried after ${status}`, () => {
      const events = recordAttempt('d', known(), answer({ status }), START);
      const { retry_at, end, error } = failed(events);
      expect(end).to.equal(null);
      expect(error).to.contain(String(status));
      expect(fromIso(retry_at ?? '') - START).to.be.within(5000, 5500);
      expect(known(...events)).to.include({ state: 'pending', dueAt: fromIso(retry_at ?? '') });
    });
  }

  it('is not retried after 410', () => {
    const events = recordAttempt('d', known(), answer({ status: 410, retryAfter: 1000 }), START);
    expect(failed(events)).to.include({ end: 'gone', retry_at: null });
    expect(known(...events)).to.include({ state: 'failed' });
  });

  for (const end of ['refused', 'no_url'] as const) {
    it(`is not retried if no retry can help: ${end}`, () => {
      const given = answer({ status: null, error: 'no', end });
      expect(failed(recordAttempt('d', known(), given, START))).to.include({ end, retry_at: null });
    });
  }

  it('waits as long as the receiver asks, if that is longer', () => {
    const after = (retryAfter: number): number => {
      const events = recordAttempt('d', known(), answer({ retryAfter }), START);
      return fromIso(failed(events).retry_at ?? '') - START;
    };
    expect(after(60_000)).to.equal(60_000);
    expect(after(1000)).to.be.within(5000, 5500);
  });

  it('is retried for a day, with growing pauses, whatever its id', () => {
    for (let n = 0; n < 50; n += 1) {
      let state = known();
      let now = START;
      let pause = 0;
      for (;;) {
        const { retry_at, end } = failed(recordAttempt(`d${n}`, state, answer(), now));
        if (retry_at === null) {
          expect(end).to.equal('expired');
          break;
        }
        const next = fromIso(retry_at);
        expect(next - now).to.be.greaterThan(pause);
        pause = next - now;
        now = next;
        const attempts = state.attempts + 1;
        state = { ...state, attempts, dueAt: now };
      }
      expect(now - START).to.be.within(DELIVERY_LIFETIME * 0.9, DELIVERY_LIFETIME);
      expect(state.attempts).to.equal(10);
    }
  });

  it('expires if the receiver asks for more time than is left of the day', () => {
    const events = recordAttempt(
      'd',
      known(),
      answer({ retryAfter: DELIVERY_LIFETIME }),
      START + 1,
    );
    expect(failed(events)).to.include({ end: 'expired', retry_at: null });
  });

  it('can be repeated after its end, for another day', () => {
    refused('STATE_CONFLICT', () => repeatWebhook(known()));
    const ended = recordAttempt('d', known(), answer({ status: 410 }), START);
    const [repeated] = repeatWebhook(known(...ended));
    expect(repeated).to.deep.equal({ type: 'WebhookRepeated', data: {} });
    const at = place(9, START + 3 * DELIVERY_LIFETIME);
    const again = webhookFold.evolve(known(...ended), { type: 'WebhookRepeated', data: {} }, at);
    const now = START + 3 * DELIVERY_LIFETIME;
    expect(again).to.include({ state: 'pending', attempts: 0, since: now, dueAt: now });
    expect(failed(recordAttempt('d', again as KnownWebhook, answer(), now)).end).to.equal(null);
  });
});
