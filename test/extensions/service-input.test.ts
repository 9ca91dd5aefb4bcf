import { expect } from 'chai';
import { hostEndpoints } from '../../api/endpoints/extension-endpoints.ts';
import { builtInEndpoints } from '../support/response-check.ts';
import { morning, useToolService } from './tool-protocol.ts';

describe('a built-in extension', () => {
  const service = useToolService();

  for (const { method, paths, query, responses: answers } of [
    ...builtInEndpoints,
    ...hostEndpoints,
  ]) {
    const [path] = paths;
    const verb = method.toUpperCase();
    const isPage = JSON.stringify(answers).includes('text/html');
    it(`${isPage ? 'accepts any' : 'checks each parameter of the'} query: ${verb} ${path}`, async () => {
      const place = path.replace(':extension_id', 'webui').replaceAll(/:\w+/g, 'echo');
      const answer = await service().admin.client.send(verb, `${place}?statuss=paused`);
      if (isPage) {
        expect(answer.status).to.equal(200);
        return;
      }
      expect(answer.status, answer.text).to.equal(400);
      const names = Object.keys(query?.['properties'] ?? {}).join(', ');
      const there = names === '' ? 'there are none here' : `there are ${names}`;
      expect(answer.at('details.issues.0')).to.deep.equal({
        field: 'statuss',
        issue: `is not a known query parameter; ${there}`,
      });
    });
  }

  it('rejects an invalid or repeated parameter', async () => {
    const { client } = service().admin;
    const subscribe = '/ext/events_demo/subscribe/news';
    for (const [path, field] of [
      [`${subscribe}?from=end`, 'from'],
      [`${subscribe}?from=start&from=start`, 'from'],
      ['/ext/webui/api/titles?ids=a&ids=b', 'ids'],
      ['/ext/observability/metrics?x=1', 'x'],
    ] as const) {
      const answer = await client.get(path);
      expect(answer.status, `${path} ${answer.text}`).to.equal(400);
      expect(answer.at('details.field')).to.equal(field);
    }
    expect((await client.get(`${subscribe}?x=1`, { token: null })).status).to.equal(401);
    expect((await service().reader.client.get(`${subscribe}?x=1`)).status).to.equal(403);
    expect((await client.get('/ext/webui/static/main.js?v=1')).status).to.equal(200);
  });

  it('creates a task with a large float, whichever way it is sent', async () => {
    const { client } = service().admin;
    const headers = { 'content-type': 'application/json' };
    const pipeline = '{"params":{"n":1e20},"pipeline":[]}';
    const task = JSON.stringify({ ...morning, payload: 'here' }).replace('"here"', pipeline);
    const invoked = `{"tool":"create_task","parameters":${task}}`;
    for (const [path, raw] of [
      ['webui/api/tasks', task],
      ['mcp_http/invoke', invoked],
    ] as const) {
      const answer = await client.post(`/ext/${path}`, undefined, { raw, headers });
      expect(answer.status, answer.text).to.be.within(200, 201);
      expect(answer.text).to.contain('"n":1e+20');
    }
  });

  it('rejects a number that JavaScript cannot represent, whichever way it is sent', async () => {
    const { client } = service().admin;
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const id = '7615917337495251231';
    const call = `{"name": "echo", "arguments": {"id": ${id}}}`;
    const message = `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ${call}}`;
    const task = JSON.stringify({ ...morning, payload: 'here' });
    for (const [path, raw, field] of [
      ['mcp_http/mcp', message, 'params.arguments.id'],
      ['mcp_http/invoke', `{"tool": "echo", "parameters": {"id": ${id}}}`, 'parameters.id'],
      ['events_demo/publish/news', `[${id}]`, '0'],
      ['webui/api/tasks', task.replace('"here"', `{"n": ${id}}`), 'payload.n'],
      ['webui/api/preview', `{"count": ${id}}`, 'count'],
    ] as const) {
      const answer = await client.post(`/ext/${path}`, undefined, { raw, headers });
      expect(answer.status, `${path} ${answer.text}`).to.equal(400);
      expect(answer.at('details.field')).to.equal(field);
      expect(answer.textAt('message')).to.include(id);
    }
  });
});
