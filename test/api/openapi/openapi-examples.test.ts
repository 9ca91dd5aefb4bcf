import { expect } from 'chai';
import { Ajv } from 'ajv';
import { endpoints } from '../../../api/app.ts';
import { hostEndpoints } from '../../../api/endpoints/extension-endpoints.ts';
import { isPublished, type DescribedEndpoint } from '../../../api/openapi/endpoint-outcomes.ts';
import { errorExample } from '../../../api/openapi/examples/errors.ts';
import { examples, type Examples } from '../../../api/openapi/examples.ts';
import { parameterExamples } from '../../../api/openapi/examples/parameters.ts';
import { toolExamples } from '../../../api/openapi/examples/tools.ts';
import { unlistedEndpoints } from '../../../api/openapi/unlisted-endpoints.ts';
import { ErrorBody, mediaTypeOf } from '../../../api/schemas/response-schemas.ts';
import { errorStatuses, type ErrorCode } from '../../../api/errors.ts';
import { bodyCheck, queryCheck } from '../../../api/serving/validation.ts';
import { isUuid } from '../../../domain/ids.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { checkPayload } from '../../../domain/pipeline/check-payload.ts';
import { createBuiltInTools } from '../../../scheduler/tools/built-in.ts';
import { builtInEndpoints } from '../../support/response-check.ts';
import { noActions } from '../../support/api-settings.ts';

/** As the tests check real responses: no field beyond the schema. */
const ajv = new Ajv({
  allErrors: true,
  strict: false,
  formats: {
    uuid: isUuid,
    'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
    date: /^\d{4}-\d\d-\d\d$/,
    uri: (text: string) => URL.canParse(text),
    'http-url': true,
  },
});

const described: readonly DescribedEndpoint[] = [
  ...endpoints,
  ...unlistedEndpoints,
  ...hostEndpoints,
  ...builtInEndpoints,
];
const published = described.filter(isPublished).map((endpoint) => {
  const shown: Examples = endpoint.examples ?? examples[endpoint.operationId] ?? {};
  return { ...endpoint, shown };
});

describe('the examples of the interface', () => {
  const { registry } = createBuiltInTools({ actions: noActions, allowPrivate: false });

  it('exist only for existing operations', () => {
    const ids = new Set(published.map(({ operationId }) => operationId));
    expect(Object.keys(examples).filter((id) => !ids.has(id))).to.deep.equal([]);
  });

  for (const { operationId, body, query, responses: answers, paths, shown } of published) {
    describe(`of ${operationId}`, () => {
      if (body !== undefined) {
        it('have a body that the service accepts', () => {
          expect(shown.body).not.to.equal(undefined);
          bodyCheck(body)(shown.body);
          const { payload } = shown.body as { readonly payload?: JsonObject };
          if (payload === undefined || !('pipeline' in payload)) return;
          expect(checkPayload(payload, registry.of('default'))).to.deep.equal({
            issues: [],
            warnings: [],
          });
        });
      }
      if (query !== undefined) {
        it('have parameters that the service accepts', () => {
          const names = Object.keys((query['properties'] ?? {}) as object);
          const values = names.map((name) => [
            name,
            String(shown.parameters?.[name] ?? parameterExamples[name]),
          ]);
          expect(values.filter(([, value]) => value === 'undefined')).to.deep.equal([]);
          queryCheck(query)(Object.fromEntries(values) as Record<string, unknown>);
        });
      }
      it('have a value for each parameter of its path', () => {
        for (const [, name = ''] of paths[0].matchAll(/:(\w+)/g)) {
          const value = String(shown.parameters?.[name] ?? parameterExamples[name]);
          if (name.endsWith('id') && name !== 'extension_id')
            expect(isUuid(value), name).to.equal(true);
          else expect(value, name).to.match(/^[\w.-]+$/);
        }
      });
      for (const [status, schema] of Object.entries(answers)) {
        const type = mediaTypeOf(schema);
        if (type === 'none') continue;
        it(`have a response with ${status} as the service gives it`, () => {
          const answer = shown.responses?.[Number(status)];
          if (type !== 'application/json') {
            expect(answer).to.be.a('string').that.is.not.empty;
            return;
          }
          const check = ajv.compile(schema);
          expect(check(answer), ajv.errorsText(check.errors)).to.equal(true);
        });
      }
    });
  }

  it('have a step for each built-in tool, which the service accepts', () => {
    const steps = registry
      .of('default')
      .list()
      .map(({ name }) => ({ uses: name, ...toolExamples[name] }));
    expect(Object.keys(toolExamples)).to.have.members(
      registry
        .of('default')
        .list()
        .map(({ name }) => name),
    );
    const { issues } = checkPayload(
      { pipeline: steps as unknown as JsonObject[] },
      registry.of('default'),
    );
    expect(issues).to.deep.equal([]);
  });

  it('have a body for each error', () => {
    const check = ajv.compile(ErrorBody);
    for (const code of Object.keys(errorStatuses) as ErrorCode[]) {
      expect(check(errorExample(code)), ajv.errorsText(check.errors)).to.equal(true);
    }
  });
});
