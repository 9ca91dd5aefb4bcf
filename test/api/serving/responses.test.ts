import { expect } from 'chai';
import { endpoints } from '../../../api/app.ts';
import { unlistedEndpoints } from '../../../api/openapi/unlisted-endpoints.ts';
import { newId } from '../../../domain/ids.ts';
import { checkResponse } from '../../support/response-check.ts';

describe('every endpoint', () => {
  it('declares its responses', () => {
    const silent = [...endpoints, ...unlistedEndpoints]
      .filter(({ responses: answers }) => Object.keys(answers).length === 0)
      .map(({ method, paths }) => `${method} ${paths[0]}`);
    expect(silent).to.deep.equal([]);
  });
});

describe('the check of responses', () => {
  const headers = { 'content-type': 'application/json; charset=utf-8' };
  const agent = {
    id: newId(0),
    namespace: 'default',
    name: 'a',
    scopes: [],
    webhook_url: null,
    disabled: null,
    created_at: '2026-11-21T03:05:36.125Z',
    updated_at: '2026-11-21T03:05:36.125Z',
  };
  const path = `/agents/${agent.id}`;
  const check = (body: unknown, status = 200, more: Readonly<Record<string, string>> = {}) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return (): void =>
      checkResponse('GET', path, { status, headers: { ...headers, ...more }, text });
  };

  it('accepts declared ones', () => {
    expect(check(agent, 200, { etag: '"0"' })).not.to.throw();
    const refusal = { error: 'not_found', message: 'm', details: {}, request_id: 'r' };
    expect(check(refusal, 404)).not.to.throw();
  });

  it('rejects a body with an extra, missing or mistyped field', () => {
    expect(check({ ...agent, secret_hash: '' })).to.throw('additional properties');
    expect(check({ ...agent, name: undefined })).to.throw("required property 'name'");
    expect(check({ ...agent, created_at: '2026-11-21' })).to.throw('date-time');
    expect(check('<html>')).to.throw('not JSON');
  });

  it('rejects undeclared statuses, types and headers', () => {
    expect(check(agent, 201)).to.throw('status 201');
    expect(check(agent, 200, { 'content-type': 'text/html' })).to.throw('text/html');
    expect(check(agent, 200, { 'x-total-count': '1' })).to.throw('X-Total-Count');
  });

  it('rejects an error with the code of another status', () => {
    const refusal = { error: 'conflict', message: 'm', details: {}, request_id: 'r' };
    expect(check(refusal, 404)).to.throw('conflict and not not_found');
  });
});
