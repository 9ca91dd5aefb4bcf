import { EventEmitter } from 'node:events';
import { expect } from 'chai';
import type { Response } from 'express';
import { BulkyAnswers } from '../../../api/serving/bulky-answers.ts';

/** As much of a response as is looked at. */
class FakeResponse extends EventEmitter {
  closed = false;
  writableFinished = false;
  writableLength = 0;

  close(): void {
    this.closed = true;
    this.emit('close');
  }
}

const asResponse = (response: FakeResponse) => response as unknown as Response;

describe('large answers', () => {
  it('wait until one before them was taken by its client', async () => {
    const bulky = new BulkyAnswers(1);
    const slow = new FakeResponse();
    const order: string[] = [];
    const first = bulky.inTurn('a', asResponse(slow), async () => {
      slow.writableLength = 1_000_000;
      order.push('first');
    });
    const second = bulky.inTurn('b', asResponse(new FakeResponse()), async () => {
      order.push('second');
    });
    await Promise.resolve();
    order.push('taken');
    slow.close();
    await Promise.all([first, second]);
    expect(order).to.deep.equal(['first', 'taken', 'second']);
  });

  it('wait no longer than their patience for a client that takes nothing', async () => {
    const bulky = new BulkyAnswers(1, 1);
    const stuck = new FakeResponse();
    await bulky.inTurn('a', asResponse(stuck), async () => {
      stuck.writableLength = 1_000_000;
    });
    expect(stuck.listenerCount('close')).to.equal(0);
  });

  it('are not made for a client that has left meanwhile', async () => {
    const bulky = new BulkyAnswers(1);
    const gone = new FakeResponse();
    gone.close();
    let made = 0;
    await bulky.inTurn('a', asResponse(gone), async () => {
      made += 1;
    });
    expect(made).to.equal(0);
  });

  it('hand on their turn where they fail', async () => {
    const bulky = new BulkyAnswers(1);
    const failing = bulky.inTurn('a', asResponse(new FakeResponse()), async () => {
      throw new Error('it fails');
    });
    expect(await failing.catch((error: unknown) => String(error))).to.contain('it fails');
    let made = 0;
    await bulky.inTurn('a', asResponse(new FakeResponse()), async () => {
      made += 1;
    });
    expect(made).to.equal(1);
  });
});
