import { expect } from 'chai';
import { endpoints } from '../../../api/app.ts';
import { unlistedEndpoints } from '../../../api/openapi/unlisted-endpoints.ts';
import { newId } from '../../../domain/ids.ts';
import type { ReceivedResponse } from '../../support/api-client.ts';
import { useRunningApi } from '../../support/running-api.ts';

const pages = ['/docs'];
/** A provider may add parameters to its response (RFC 6749, section 4.1.2). */
const tolerant = ['/auth/oidc/callback'];
/** Rejects every query parameter. */
const refusing = ['/oauth/authorize'];
const issueOf = (answer: ReceivedResponse): unknown => answer.at('details.issue');

/** A path with well-formed values for its parameters. */
const filled = (path: string): string =>
  path.replaceAll(/:(\w+)/g, (_, name: string) => (name.endsWith('id') ? newId(0) : 'runs'));

const known = ({ query }: { readonly query?: object }): readonly string[] => {
  const { properties = {} } = (query ?? {}) as { readonly properties?: object };
  return Object.keys(properties).sort();
};

describe('the query of a request', () => {
  const api = useRunningApi();

  for (const endpoint of [...endpoints, ...unlistedEndpoints]) {
    for (const path of endpoint.paths) {
      if ([...pages, ...tolerant, ...refusing].includes(path)) continue;
      const { method } = endpoint;
      it(`may hold only parameters that ${method.toUpperCase()} ${path} knows, and an error names those`, async () => {
        const answer = await api().admin.client.send(
          method.toUpperCase(),
          `${filled(path)}?statuss=paused`,
        );
        expect(answer.status, answer.text).to.equal(400);
        const names = known(endpoint);
        const there = names.length === 0 ? 'there are none here' : `there are ${names.join(', ')}`;
        const issue = `is not a known query parameter; ${there}`;
        if ('oauth' in endpoint && endpoint.oauth === true) {
          expect(answer.json).to.deep.equal({
            error: 'invalid_request',
            error_description: `statuss: ${issue}`,
          });
          return;
        }
        expect(answer.at('error')).to.equal('bad_request');
        const issues = answer.at('details.issues') as readonly { readonly field: string }[];
        expect(issues[0]).to.deep.equal({ field: 'statuss', issue });
        expect(answer.at('message')).to.equal(`statuss: ${issue}`);
      });
    }
  }

  it('is ignored by pages', async () => {
    for (const path of pages) {
      expect((await api().admin.client.get(`${path}?from=a-mail`)).status).to.equal(200);
    }
  });

  it('is checked once the caller is known, and before the resource of the path', async () => {
    const { client } = api().admin;
    const { client: scopeless } = await api().signIn(['something:else']);
    expect((await client.get('/tasks?statuss=x', { token: null })).status).to.equal(401);
    expect((await scopeless.get('/tasks?statuss=x')).status).to.equal(403);
    expect((await client.get('/nothing?statuss=x')).status).to.equal(404);
    expect((await client.get(`/tasks/${newId(0)}?statuss=x`)).status).to.equal(400);
    expect((await client.get(`/tasks/${newId(0)}`)).status).to.equal(404);
    const broken = { raw: '{', headers: { 'content-type': 'application/json' } };
    const body = await client.post('/tasks?statuss=x', undefined, broken);
    expect(body.at('details.field')).to.equal('body');
  });

  it('may have each parameter only once', async () => {
    const { client } = api().admin;
    const answer = await client.get('/runs?limit=1&limit=2&after=a&after=b&after=c');
    expect(answer.status).to.equal(400);
    expect(answer.at('details.issues')).to.deep.equal([
      { field: 'limit', issue: 'must be given once, got 2' },
      { field: 'after', issue: 'must be given once, got 3' },
    ]);
  });

  it('is rejected with all of its errors', async () => {
    const answer = await api().admin.client.get(
      '/runs?limit=0&success=perhaps&tag=x&=&__proto__=1',
    );
    const issues = answer.at('details.issues') as readonly { readonly field: string }[];
    expect(issues.map(({ field }) => field)).to.have.members([
      'tag',
      '',
      '__proto__',
      'limit',
      'success',
    ]);
  });

  it('is rejected for every invalid value of a known parameter', async () => {
    for (const [path, field] of [
      ['/tasks?status=on', 'status'],
      ['/tasks?created_by=me', 'created_by'],
      ['/tasks?limit=1e400', 'limit'],
      ['/tasks?offset=9007199254740993', 'offset'],
      ['/runs?include_errors=yes', 'include_errors'],
      ['/stats/summary?days=0', 'days'],
      ['/runs/stats/summary?days=366', 'days'],
      ['/stream/recent?count=1001', 'count'],
      ['/runs/live?state=gone', 'state'],
      ['/audit/live?type=Nothing', 'type'],
      [`/runs?cursor=${'x'.repeat(2001)}`, 'cursor'],
      ['/tasks?after=x', 'after'],
      ['/runs/live?after=x', 'after'],
    ] as const) {
      const answer = await api().admin.client.get(path);
      expect(answer.status, `${path} ${answer.text}`).to.equal(400);
      expect(answer.at('details.field'), path).to.equal(field);
      expect(issueOf(answer), path).not.to.include('known query parameter');
    }
  });

  it('may be empty', async () => {
    for (const path of ['/tasks?', '/tasks?&', '/health/live?']) {
      expect((await api().admin.client.get(path)).status, path).to.equal(200);
    }
  });
});
