import { CookieBrowser, type Visited } from '../../support/cookie-browser.ts';
import { TestIdentityProvider } from '../../support/identity-provider.ts';
import { RunningApi } from '../../support/running-api.ts';
import type { ApiSettings } from '../../../api/dependencies.ts';

/** A service with an identity provider. */
export interface PeopleWorld {
  readonly api: RunningApi;
  readonly provider: TestIdentityProvider;
  /** Starts a sign-in. @returns the provider's form */
  begin(browser: CookieBrowser, view?: string): Promise<Visited>;
  /** Starts a sign-in, and enters the account. @returns the provider's response, before the service gets it */
  untilCallback(browser: CookieBrowser, sub: string): Promise<string>;
  /** Signs a person in. @returns the last response */
  signIn(browser: CookieBrowser, sub: string): Promise<Visited>;
  /** Who is signed in. */
  sessionOf(browser: CookieBrowser): Promise<{
    readonly agent: {
      readonly id: string;
      readonly name: string;
      readonly scopes: string[];
    } | null;
  }>;
}

/** Called inside a `describe`: one service and one provider for all its tests. */
export function usePeopleWorld(settings: Partial<ApiSettings> = {}): () => PeopleWorld {
  let world: PeopleWorld | undefined;
  let stop = async (): Promise<void> => {};
  before(async () => {
    const provider = await TestIdentityProvider.start();
    const api = await RunningApi.start({ people: provider.settings(), ...settings });
    await provider.serve(api.url);
    await api.admin.client.post('/namespaces', { name: 'billing' });
    stop = async () => {
      await api.close();
      await provider.stop();
    };
    const callback = `${api.url}/auth/oidc/callback`;
    const begin = (browser: CookieBrowser, view = '') =>
      browser.open(`${api.url}/auth/oidc/login${view === '' ? '' : `?view=${view}`}`, callback);
    const untilCallback = async (browser: CookieBrowser, sub: string): Promise<string> => {
      const form = await begin(browser);
      // The provider asks each browser only once.
      if (form.url.startsWith(callback)) return form.url;
      return (await browser.submit(form, { sub }, callback)).url;
    };
    world = {
      api,
      provider,
      begin,
      untilCallback,
      signIn: async (browser, sub) => browser.open(await untilCallback(browser, sub)),
      sessionOf: async (browser) => {
        const { text } = await browser.request('GET', `${api.url}/auth/session`);
        return JSON.parse(text) as Awaited<ReturnType<PeopleWorld['sessionOf']>>;
      },
    };
  });
  after(() => stop());
  return () => {
    if (world === undefined) throw new Error('the service runs only during the tests');
    return world;
  };
}
