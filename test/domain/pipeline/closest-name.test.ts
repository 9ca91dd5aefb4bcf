import { expect } from 'chai';
import { closestName } from '../../../domain/pipeline/closest-name.ts';

const tools = ['echo', 'sleep', 'http.request', 'events.publish', 'log'];

describe('the closest name', () => {
  for (const [given, meant] of [
    ['ehco', 'echo'],
    ['Echo', 'echo'],
    ['http.reqest', 'http.request'],
    ['http_request', 'http.request'],
    ['events.publsh', 'events.publish'],
    ['slep', 'sleep'],
    ['acme.ship', null],
    ['x', null],
    ['', null],
    ['e'.repeat(500), null],
  ] as const) {
    it(`to ${given.slice(0, 20) || 'nothing'} is ${meant ?? 'none'}`, () => {
      expect(closestName(given, tools)).to.equal(meant);
    });
  }
});
