import { expect } from 'chai';
import { greeting } from '../../../app/starting/greeting.ts';

describe('the greeting', () => {
  const address = 'http://127.0.0.1:8080';
  const admin = { agent_id: 'an-id', agent_secret: 'the secret of the admin' };
  const settings = { dataDirectory: './data', adminSecret: undefined };

  const times = (text: string, part: string): number => text.split(part).length - 1;

  it('shows a generated secret once, with a call that takes it from the file', () => {
    const text = greeting(address, admin, settings);
    expect(times(text, admin.agent_secret)).to.equal(1);
    expect(text).to.include(`id      ${admin.agent_id}`);
    expect(text).to.include("-d '@data/admin-credentials.json'");
  });

  it('never shows a secret that was supplied', () => {
    const text = greeting(address, admin, { ...settings, adminSecret: admin.agent_secret });
    expect(text).to.not.include(admin.agent_secret);
    expect(text).to.include('Created the first agent with the secret of SVC_ADMIN_SECRET');
    expect(text).to.include(`id      ${admin.agent_id}`);
  });

  it('shows a secret that an earlier process generated before one was supplied', () => {
    const text = greeting(address, admin, { ...settings, adminSecret: 'another one of 16' });
    expect(times(text, admin.agent_secret)).to.equal(1);
  });

  it('shows how to get a token once there are agents', () => {
    const text = greeting(address, null, settings);
    expect(text).to.include(`Listening on ${address}. Get a token`);
    expect(text).to.include('"agent_id":"<id>"');
  });
});
