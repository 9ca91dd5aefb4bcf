import { expect } from 'chai';
import { CookieBrowser } from '../../support/cookie-browser.ts';
import { auditOf } from '../auditing.ts';
import { usePeopleWorld } from './people-world.ts';

describe('an attack on the sign-in of people', () => {
  const world = usePeopleWorld();
  const api = () => world().api;
  const browserOf = () => new CookieBrowser(api().url);
  before(() => {
    for (const sub of ['victim', 'attacker']) {
      world().provider.people.set(sub, { preferred_username: sub, groups: ['operators'] });
    }
  });
  /** Opens an address, and expects a refusal that sets no session. */
  async function refusedAt(browser: CookieBrowser, url: string, words: string): Promise<void> {
    const before = browser.cookies.get(browser.session);
    const refused = await browser.request('GET', url);
    expect(refused.status, refused.text).to.equal(403);
    expect(refused.text).to.include(words);
    expect(browser.cookies.get(browser.session)).to.equal(before);
  }

  it("can't slip its own response to another person (login CSRF, code injection)", async () => {
    const own = await world().untilCallback(browserOf(), 'attacker');
    await refusedAt(browserOf(), own, 'This browser did not start this sign-in');
    // Nor if the other person has started a sign-in.
    const victim = browserOf();
    const theirs = await world().untilCallback(victim, 'victim');
    await refusedAt(victim, own, 'This browser did not start this sign-in');
    const items = await auditOf(api(), api().admin, 'actor=anonymous&type=CommandRefused');
    expect(items[0]?.reason).to.include('unknown_sign_in');
    // The code of another person with the right state fails, as PKCE and the nonce belong to another sign-in.
    const again = browserOf();
    const mixed = new URL(await world().untilCallback(again, 'victim'));
    mixed.searchParams.set('code', new URL(theirs).searchParams.get('code') ?? '');
    await refusedAt(again, mixed.href, 'The sign-in was completed before, or took too long');
  });

  it("can't use a response twice, even with the cookie of the sign-in", async () => {
    const victim = browserOf();
    const callback = await world().untilCallback(victim, 'victim');
    const begun = [...victim.cookies];
    expect((await victim.open(callback)).status).to.equal(200);
    await refusedAt(victim, callback, 'This browser did not start this sign-in');
    for (const [name, value] of begun) victim.cookies.set(name, value);
    await refusedAt(victim, callback, 'The sign-in was completed before, or took too long');
  });

  it("can't use a sign-in that is ten minutes old", async () => {
    const victim = browserOf();
    const callback = await world().untilCallback(victim, 'victim');
    api().clock.shift(601_000);
    await refusedAt(victim, callback, 'it took more than ten minutes');
    api().clock.shift(-601_000);
  });

  it("can't forge or change the cookie of a sign-in", async () => {
    const victim = browserOf();
    const callback = await world().untilCallback(victim, 'victim');
    const [name = ''] = [...victim.cookies.keys()].filter((each) => each.includes('sign_in'));
    const sealed = victim.cookies.get(name) ?? '';
    for (const value of ['x', '%', sealed.slice(0, 20), `${sealed.slice(0, -4)}AAAA`]) {
      victim.cookies.set(name, value);
      await refusedAt(victim, callback, 'This browser did not start this sign-in');
    }
  });

  it("can't respond in the name of another provider (mix-up)", async () => {
    const victim = browserOf();
    const callback = new URL(await world().untilCallback(victim, 'victim'));
    callback.searchParams.set('iss', 'https://evil.example');
    await refusedAt(victim, callback.href, 'is not for this sign-in');
    const without = browserOf();
    const bare = new URL(await world().untilCallback(without, 'victim'));
    bare.searchParams.delete('iss');
    await refusedAt(without, bare.href, 'is not for this sign-in');
  });

  it("can't redirect to another site afterwards (open redirect)", async () => {
    for (const view of [
      '//evil.example',
      'https://evil.example',
      '%22%3E%3Cscript%3E',
      '/..//evil',
    ]) {
      const refused = await browserOf().request('GET', `${api().url}/auth/oidc/login?view=${view}`);
      const to = refused.headers.get('location');
      if (refused.status === 400) continue;
      expect(to, view).to.match(new RegExp(`^${world().provider.issuer}/auth`));
      const browser = browserOf();
      const form = await world().begin(browser, view);
      const done = await browser.submit(form, { sub: 'victim' });
      expect(done.text, view).to.match(/url=\.\.\/\.\.\/ext\/webui\/#\//);
    }
  });

  it("can't plant a session beforehand (session fixation)", async () => {
    const attacker = browserOf();
    await world().signIn(attacker, 'attacker');
    const planted = attacker.cookies.get(attacker.session) ?? '';
    const victim = browserOf();
    victim.cookies.set(victim.session, planted);
    await world().signIn(victim, 'victim');
    expect(victim.cookies.get(victim.session)).to.be.a('string').that.does.not.equal(planted);
    expect((await world().sessionOf(attacker)).agent?.name).to.equal('attacker');
  });

  it("can't put text on the error page", async () => {
    const callback = `${api().url}/auth/oidc/callback?error=%3Cscript%3E&error_description=call+0800`;
    const refused = await browserOf().request('GET', callback);
    expect(refused.text).to.not.match(/script|0800/);
  });
});
