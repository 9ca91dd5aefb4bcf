import { expect } from 'chai';
import { useRunningApi } from '../../support/running-api.ts';

describe('GET /docs', () => {
  const api = useRunningApi();
  const get = (path: string) => api().admin.client.get(path, { token: null });

  it('is a page that may load nothing from elsewhere', async () => {
    const page = await get('/docs');
    expect(page.status).to.equal(200);
    expect(page.header('Content-Type')).to.equal('text/html; charset=utf-8');
    expect(page.text).not.to.match(/https?:/);
    const policy = page.header('Content-Security-Policy');
    expect(policy).to.include("script-src 'self';").and.to.include("connect-src 'self'");
  });

  for (const at of ['/docs', '/docs/']) {
    it(`finds everything that it loads from ${at}`, async () => {
      const page = await get(at);
      const loaded = [...page.text.matchAll(/(?:src|href)="(?!data:)([^"]+)"/g)].map(
        ([, path = '']) => new URL(path, `http://service${at}`).pathname,
      );
      expect(loaded).to.have.lengthOf(4);
      for (const path of loaded) expect((await get(path)).status, path).to.equal(200);
    });
  }

  it('has a script that reads the description and contacts no validator', async () => {
    const { text } = await get('/docs/start.js');
    expect(text).to.include("+ 'openapi.json'").and.to.include('validatorUrl: null');
    expect((await get('/docs/swagger-ui-bundle.js')).text).to.include('SwaggerUIBundle');
  });
});
