import { expect } from 'chai';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { endpoints } from '../../../api/app.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../domain/json.ts';
import { useRunningApi } from '../../support/running-api.ts';

describe('GET /openapi.json', () => {
  const api = useRunningApi();
  let document: JsonObject;
  before(async () => {
    const answer = await api().admin.client.get('/openapi.json', { token: null });
    expect(answer.status).to.equal(200);
    document = answer.json as JsonObject;
  });

  const part = (path: string): JsonValue | undefined =>
    path
      .split('/')
      .slice(1)
      .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
      .reduce<JsonValue | undefined>(
        (whole, name) => (isJsonObject(whole) ? whole[name] : undefined),
        document,
      );
  const operation = (method: string, path: string): JsonObject =>
    part(`/paths/${path.replaceAll('/', '~1')}/${method}`) as JsonObject;

  it('describes every endpoint, by each of its paths', () => {
    expect(part('/openapi')).to.equal('3.1.0');
    const missing = endpoints.flatMap(({ method, paths }) =>
      paths
        .map((path) => path.replaceAll(/:([a-z_]+)/g, '{$1}'))
        .filter((path) => operation(method, path) === undefined),
    );
    expect(missing).to.deep.equal([]);
  });

  it('states who may call each endpoint', () => {
    expect(operation('post', '/agents/auth/token')['security']).to.deep.equal([]);
    expect(operation('get', '/runs')).to.deep.include({
      security: [{ bearer: [] }],
      'x-required-scopes': ['runs:read'],
    });
  });

  it('describes the requests of an endpoint', () => {
    const { parameters, requestBody } = operation('put', '/tasks/{id}') as {
      parameters: readonly JsonObject[];
      requestBody: JsonObject;
    };
    expect(parameters[0]).to.deep.include({ name: 'id', in: 'path', required: true });
    expect(parameters).to.deep.include({ $ref: '#/components/parameters/IfMatch' });
    const content = requestBody['content'] as JsonObject;
    expect(content['application/json']).to.deep.include({
      schema: { $ref: '#/components/schemas/UpdateTask' },
    });
    const listed = operation('get', '/runs')['parameters'] as readonly JsonObject[];
    const limit = listed.find(({ name }) => name === 'limit');
    expect(limit).to.deep.include({ in: 'query', required: false });
    expect(limit?.['schema']).to.include({ minimum: 1, maximum: 200, default: 50 });
  });

  it('describes the responses with their headers', () => {
    const responses = operation('post', '/tasks')['responses'] as Readonly<
      Record<string, JsonObject>
    >;
    expect(Object.keys(responses)).to.include.members(['201', '400', '401', '403', '409', '413']);
    expect(responses['201']?.['headers']).to.include.keys(
      'ETag',
      'Location',
      'X-Event-Position',
      'Idempotent-Replayed',
    );
    const live = operation('get', '/runs/live')['responses'] as JsonObject;
    expect(live['200']).to.have.property('content').that.has.keys('text/event-stream');
  });

  it('names each operation once', () => {
    const names = allOf(document, 'operationId');
    expect(names.length).to.be.greaterThan(endpoints.length);
    expect(new Set(names).size).to.equal(names.length);
  });

  it('has no dangling references', () => {
    const broken = allOf(document, '$ref').filter(
      (reference) => part(reference.replace(/^#/, '')) === undefined,
    );
    expect(broken).to.deep.equal([]);
  });

  it('has schemas that are valid JSON Schema 2020-12', () => {
    const ajv = new Ajv2020({
      strict: true,
      strictTypes: false,
      strictRequired: false,
      validateFormats: false,
    });
    ajv.addVocabulary(['components', 'discriminator', 'x-secret']);
    const { components } = document;
    for (const name of Object.keys(part('/components/schemas') as JsonObject)) {
      const compile = () => ajv.compile({ components, $ref: `#/components/schemas/${name}` });
      expect(compile, name).not.to.throw();
    }
  });
});

/** All values of a key, at any depth. */
function allOf(value: JsonValue, key: string): readonly string[] {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).flatMap((v) => allOf(v, key));
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([name, part]) =>
    name === key && typeof part === 'string' ? [part] : allOf(part, key),
  );
}
