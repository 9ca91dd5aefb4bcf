import { EventEmitter } from 'node:events';
import { expect } from 'chai';
import type { Response } from 'express';
import { LargeResponses } from '../../../api/serving/large-responses.ts';

/** The part of a response that is read. */
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

describe('large responses', () => {
  it('wait until the client has received the previous one', async () => {
    const bulky = new LargeResponses(1);
    const slow = new FakeResponse();
    const order: string[] = [];
    const endFirst = await bulky.takeTurn('a', asResponse(slow));
    slow.writableLength = 1_000_000;
    const second = bulky
      .takeTurn('b', asResponse(new FakeResponse()))
      .then(() => order.push('second'));
    endFirst();
    await Promise.resolve();
    order.push('received');
    slow.close();
    await second;
    expect(order).to.deep.equal(['received', 'second']);
  });

  it('wait only a limited time for a client that reads nothing', async () => {
    const bulky = new LargeResponses(1, 1);
    const stuck = new FakeResponse();
    const end = await bulky.takeTurn('a', asResponse(stuck));
    stuck.writableLength = 1_000_000;
    end();
    await bulky.takeTurn('b', asResponse(new FakeResponse()));
    expect(stuck.listenerCount('close')).to.equal(0);
  });

  it('do not wait for a disconnected client', async () => {
    const bulky = new LargeResponses(1);
    const gone = new FakeResponse();
    const end = await bulky.takeTurn('a', asResponse(gone));
    gone.writableLength = 1_000_000;
    gone.close();
    end();
    await bulky.takeTurn('b', asResponse(new FakeResponse()));
  });
});
