import { expect } from 'chai';
import type { RecordedEvent } from '../../../domain/event-store.ts';
import { webhookMessageOf } from '../../../domain/webhooks/webhook-messages.ts';
import { place } from '../given.ts';

describe('a webhook message', () => {
  /** The error in the message about a run that failed with it. */
  function errorIn(error: string): unknown {
    const { metadata } = place(3);
    const event: RecordedEvent = {
      type: 'RunFailed',
      data: {
        task_id: 'task-1',
        started_at: metadata.occurredAt,
        attempt: 1,
        error,
        step: 'step_0',
        steps: [],
        output: {},
      },
      id: 'event-1',
      stream: 'run-1',
      createdAt: metadata.occurredAt,
      revision: 3,
      position: '3',
      metadata,
    };
    return webhookMessageOf(event)?.payload.data['error'];
  }

  it("truncates a run's error between characters", () => {
    expect(errorIn(`${'A'.repeat(1999)}😀z`)).to.equal('A'.repeat(1999));
    expect(errorIn(`${'A'.repeat(1998)}😀z`)).to.equal(`${'A'.repeat(1998)}😀`);
  });

  it('contains no half of a character, even if the error does', () => {
    expect(errorIn('no \ud83d, but 😀')).to.equal('no \ufffd, but 😀');
  });
});
