import { expect } from 'chai';
import { TestIdentityProvider } from '../../support/identity-provider.ts';
import { ServiceProcess, credentialsIn } from '../../support/service-process.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { useBrowser } from './webui-browser.ts';

describe('a session of the web page', function () {
  this.timeout(300_000);
  let directory: TemporaryDirectory;
  let provider: TestIdentityProvider;
  let service: ServiceProcess;
  const start = (port = '0'): Promise<ServiceProcess> =>
    ServiceProcess.start({
      SVC_DATA_DIR: directory.path,
      SVC_PORT: port,
      ...provider.environment(),
    });

  before(async () => {
    directory = await makeTemporaryDirectory();
    provider = await TestIdentityProvider.start();
    provider.people.set('ada', { preferred_username: 'ada', groups: ['operators'] });
    provider.people.set('eve', { preferred_username: 'eve', groups: [] });
    service = await start();
    await provider.serve(service.address);
  });
  after(async () => {
    await service.terminate();
    await provider.stop();
    await directory.remove();
  });
  const browsing = useBrowser(() => service.address);

  it('starts at the identity provider, and survives a reload and a restart until it ends', async () => {
    const { page, complaints } = browsing();
    await page.goto(`${service.address}/ext/webui/#/runs?state=failed`);
    await page.getByRole('link', { name: 'Log in with your account' }).click();
    await page.getByLabel('Account').fill('ada');
    await page.getByRole('button', { name: 'Sign in' }).click();
    const runs = page.getByRole('heading', { level: 1, name: 'Runs' });
    await runs.waitFor();
    expect(page.url()).to.equal(`${service.address}/ext/webui/#/runs?state=failed`);

    const kept = await page.evaluate<string>(
      'JSON.stringify([document.cookie, localStorage.length, sessionStorage.length])',
    );
    expect(kept).to.equal('["",0,0]');
    const cookies = await page.context().cookies(`${service.address}/`);
    const own = cookies.filter(({ name }) => name.startsWith('svc_'));
    expect(own).to.have.length(1);
    expect(own[0]).to.include({ httpOnly: true, sameSite: 'Strict' });

    await page.reload();
    await runs.waitFor();
    const { port } = new URL(service.address);
    await service.terminate();
    service = await start(port);
    await page.reload();
    await runs.waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Agent ID').waitFor();
    await page.reload();
    await page.getByLabel('Agent ID').waitFor();
    const others = complaints.filter(
      (each) => !each.includes(provider.issuer) && !/refused|RESET|INCOMPLETE|50\d/i.test(each),
    );
    expect(others).to.deep.equal([]);
  });

  it('can start with a secret too, and ends when its agent is removed', async () => {
    const { page } = browsing();
    await browsing().logIn(credentialsIn(directory.path), 'tasks');
    await page.reload();
    const tasks = page.getByRole('heading', { level: 1, name: 'Tasks' });
    await tasks.waitFor();
    await browsing().expectAccessible();
    await page.context().clearCookies();
    await browsing().goTo('runs');
    await page.getByText('Your session has ended. Log in again.').waitFor();
    await browsing().expectAccessible();
  });

  it('does not start for a person without any scope, who is told why', async () => {
    const { page } = browsing();
    await page.goto(`${service.address}/auth/oidc/login`);
    await page.getByLabel('Account').fill('eve');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Your account gives you no access here').waitFor();
    await browsing().expectAccessible();
    await page.getByRole('link', { name: 'Back to the page' }).click();
    await page.getByLabel('Agent ID').waitFor();
  });
});
