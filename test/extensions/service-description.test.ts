import { expect } from 'chai';
import { hostEndpoints } from '../../api/endpoints/extension-endpoints.ts';
import { isPublished } from '../../api/openapi/endpoint-outcomes.ts';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { builtInEndpoints } from '../support/response-check.ts';
import { useToolService } from './tool-protocol.ts';

describe('extensions described by /openapi.json', () => {
  const service = useToolService();
  let paths: JsonObject;
  before(async () => {
    const answer = await service().admin.client.get('/openapi.json', { token: null });
    paths = answer.json['paths'] as JsonObject;
  });
  const operation = (method: string, path: string): JsonObject => {
    const operations = paths[path];
    const found = isJsonObject(operations) ? operations[method] : undefined;
    if (!isJsonObject(found)) throw new Error(`there is no ${method} ${path}`);
    return found;
  };

  it('include their endpoints, with the schemas that their responses are checked against', () => {
    const described = [...hostEndpoints, ...builtInEndpoints].filter(isPublished);
    expect(described.length).to.be.greaterThan(10);
    for (const { method, paths: own, responses: answers } of described) {
      const written = own[0].replaceAll(/:([a-z_]+)/g, '{$1}').replace(/\/$/, '');
      const found = operation(method, written);
      expect(found['responses']).to.include.keys(Object.keys(answers));
    }
    expect(operation('get', '/ext/hello/greet/{name}')['summary']).to.equal('Greets somebody');
  });

  it('show parameters and scopes, and refer to the schemas of the service', () => {
    const create = operation('post', '/ext/webui/api/tasks');
    expect(create).to.deep.include({
      security: [{ bearer: [] }],
      'x-required-scopes': ['tasks:write'],
    });
    expect(JSON.stringify(create['responses'])).to.include('"#/components/schemas/Task"');
    expect(JSON.stringify(create['requestBody'])).to.include('"#/components/schemas/UpdateTask"');
    const publish = operation('post', '/ext/events_demo/publish/{stream}');
    expect(publish['requestBody']).to.include({ required: true });
    const health = operation('get', '/ext/{extension_id}/health');
    expect(health['parameters']).to.deep.include({
      name: 'extension_id',
      in: 'path',
      required: true,
      description: 'id of the extension',
      example: 'webui',
      schema: { type: 'string', minLength: 1 },
    });
    expect(operation('get', '/ext/mcp_http/meta')['security']).to.deep.equal([]);
  });

  it('match the actual status and health responses', async () => {
    const { client } = service().admin;
    const status = await client.get('/ext/status', { token: null });
    const extensions = status.at('extensions') as Readonly<Record<string, { state: string }>>;
    expect(extensions).to.have.keys('events_demo', 'hello', 'mcp_http', 'observability', 'webui');
    for (const [id, { state }] of Object.entries(extensions)) {
      expect(state, id).to.equal('loaded');
      expect((await client.get(`/ext/${id}/health`)).at('status'), id).to.equal('healthy');
      expect((await client.get(`/ext/${id}/health`, { token: null })).status, id).to.equal(401);
    }
    expect((await client.get('/ext/nobody/health')).status).to.equal(404);
  });
});
