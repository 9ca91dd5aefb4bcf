import { expect } from 'chai';
import type { DataOf, IdempotencyEvent } from '../../domain/events/catalogue.ts';
import {
  IDEMPOTENCY_LIFE,
  RENEWAL_INTERVAL,
  idempotencyFold,
  receiveCommand,
} from '../../domain/idempotency.ts';
import { given, place, refused, START } from './given.ts';

const request: DataOf<'CommandReceived'> = {
  agent_id: 'a',
  request_hash: 'h',
  method: 'POST',
  path: '/tasks',
  expires_at: new Date(START + IDEMPOTENCY_LIFE).toISOString(),
};
const received: IdempotencyEvent = { type: 'CommandReceived', data: request };
const answer = { status: 201, body: { id: 'x' }, headers: {} };
const answered: IdempotencyEvent = { type: 'CommandAnswered', data: answer };

describe('an idempotency key', () => {
  it('is taken by the first command', () => {
    const decision = receiveCommand(given(idempotencyFold, []), request, START);
    expect(decision).to.deep.equal({ kind: 'proceed', events: [received], began: null });
  });

  it('gives a repetition the response of the first command', () => {
    const state = given(idempotencyFold, [received, answered]);
    expect(receiveCommand(state, request, START + 60_000)).to.deep.equal({
      kind: 'replay',
      answer,
    });
  });

  it('refuses another command', () => {
    const state = given(idempotencyFold, [received, answered]);
    for (const other of [{ path: '/events' }, { method: 'PUT' }, { request_hash: 'i' }]) {
      refused('STATE_CONFLICT', () => receiveCommand(state, { ...request, ...other }, START));
    }
  });

  it('refuses a repetition while the first command is in progress', () => {
    const state = given(idempotencyFold, [received]);
    refused('STATE_CONFLICT', () => receiveCommand(state, request, START + 9_999));
  });

  it('refuses a repetition as long as the first command is renewed', () => {
    const state = [received, received].reduce(
      (before, event, index) =>
        idempotencyFold.evolve(before, event, place(index, START + index * RENEWAL_INTERVAL)),
      idempotencyFold.initial,
    );
    refused('STATE_CONFLICT', () => receiveCommand(state, request, START + 12_000));
    expect(receiveCommand(state, request, START + 15_000)).to.deep.include({ began: 0 });
    refused('STATE_CONFLICT', () => receiveCommand(state, request, START + 60_000, 'carried-out'));
  });

  it('can be taken over if the first command was received at a future time, before the clock was set back', () => {
    const state = given(idempotencyFold, [received]);
    expect(receiveCommand(state, request, START - 3_600_000)).to.deep.include({ began: 0 });
    refused('STATE_CONFLICT', () => receiveCommand(state, request, START - 1000));
  });

  it('can be taken over as the same command if the process of the first is lost', () => {
    const state = given(idempotencyFold, [received]);
    expect(receiveCommand(state, request, START + 10_000)).to.deep.include({
      kind: 'proceed',
      began: 0,
    });
    expect(receiveCommand(state, request, START, 'lost')).to.deep.include({ began: 0 });
    const again = given(idempotencyFold, [received, received]);
    expect(receiveCommand(again, request, START + 60_000)).to.deep.include({ began: 0 });
  });

  it('is free again after a day', () => {
    const state = given(idempotencyFold, [received, answered]);
    expect(receiveCommand(state, request, START + IDEMPOTENCY_LIFE)).to.deep.include({
      kind: 'proceed',
      began: null,
    });
    const second = idempotencyFold.evolve(state, received, place(2, START + IDEMPOTENCY_LIFE));
    expect(second).to.include({ status: 'under-way', began: 2 });
  });

  it('ignores a response without a command', () => {
    expect(given(idempotencyFold, [answered])).to.deep.equal({ status: 'none' });
  });
});
