import { expect } from 'chai';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { wholeInterface } from '../../../app/interface/whole-interface.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { checkPayload } from '../../../domain/pipeline/check-payload.ts';
import { createBuiltInTools } from '../../../scheduler/tools/built-in.ts';
import { noActions } from '../../support/api-settings.ts';

describe('the described pipeline of a task', () => {
  const { registry } = createBuiltInTools({ actions: noActions, allowPrivate: false });
  let described: ValidateFunction;
  let components: JsonObject;

  before(async () => {
    components = (await wholeInterface('1.0.0'))['components'] as JsonObject;
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    described = ajv.compile({ components, $ref: '#/components/schemas/TaskPayload' });
  });

  /** Whether the service accepts a payload, and whether the description says so. */
  const verdicts = (payload: unknown): readonly [service: boolean, description: boolean] => {
    const { issues } = checkPayload(payload as JsonObject, registry.of('default'));
    return [issues.length === 0, described(payload)];
  };
  const step = (more: object): object => ({ pipeline: [more] });
  const http = (given: object) => step({ uses: 'http.request', with: { url: 'x', ...given } });

  const taken: Readonly<Record<string, object>> = {
    'an empty pipeline': { pipeline: [] },
    'a field that it does not use': { pipeline: [], note: 1 },
    'a tool without arguments': step({ uses: 'echo' }),
    'a tool that nobody has registered': step({ uses: 'mail.send', with: 7 }),
    'an expression for all arguments': step({ uses: 'sleep', with: '${params}' }),
    'an expression for a number': step({ uses: 'sleep', with: { seconds: '${params.pause}' } }),
    'an expression for a boolean': step({
      uses: 'fail',
      with: { message: 'x', retryable: '${a}' },
    }),
    'an expression for an enum value': step({
      uses: 'log',
      with: { message: 'x', level: '${params.level}' },
    }),
    'an expression within a topic': step({
      uses: 'events.publish',
      with: { topic: 'orders.${params.shop}', payload: '${params}' },
    }),
    'expressions for headers and statuses': http({
      headers: { a: '${b}', c: 1 },
      query: { a: ['${b}', 2], c: '${d}' },
      expect_status: ['${ok}', 204, '3xx'],
    }),
    'an expression for all headers': http({ headers: '${params.headers}', body: [1] }),
    'all fields of a step': step({
      id: 'a',
      uses: 'echo',
      with: [1],
      save_as: 'b',
      if: true,
      timeout_seconds: 0.5,
      max_retries: 1,
      on_error: 'continue',
      for_each: [1],
    }),
    'a group': step({ parallel: [{ uses: 'echo' }, { uses: 'x.y' }], on_error: 'continue' }),
  };
  for (const [what, payload] of Object.entries(taken)) {
    it(`accepts ${what}, as the service does`, () => {
      expect(verdicts(payload), JSON.stringify(described.errors)).to.deep.equal([true, true]);
    });
  }

  const refused: Readonly<Record<string, object>> = {
    'no pipeline': { params: {} },
    'parameters that are not an object': { pipeline: [], params: [] },
    'a step without a tool': step({ with: {} }),
    'a step with an unknown field': step({ uses: 'echo', retries: 1 }),
    'missing arguments': step({ uses: 'sleep' }),
    'a missing argument': step({ uses: 'sleep', with: {} }),
    'an unknown argument': step({ uses: 'sleep', with: { seconds: 1, minutes: 1 } }),
    'a string for a number': step({ uses: 'sleep', with: { seconds: 'long' } }),
    'a number out of bounds': step({ uses: 'sleep', with: { seconds: 40_000_000 } }),
    'an unknown method': http({ method: 'FETCH' }),
    'an invalid status': http({ expect_status: '9xx' }),
    'a name with brackets': step({ uses: 'echo', id: 'a[0]' }),
    'a group within a group': step({ parallel: [{ parallel: [{ uses: 'echo' }] }] }),
    'an empty group': step({ parallel: [] }),
    'a group with a tool': step({ parallel: [{ uses: 'echo' }], uses: 'echo' }),
  };
  for (const [what, payload] of Object.entries(refused)) {
    it(`rejects ${what}, as the service does`, () => {
      expect(verdicts(payload)).to.deep.equal([false, false]);
    });
  }

  it('distinguishes the steps of built-in tools by their tool', () => {
    const { BuiltInStep } = components['schemas'] as Readonly<Record<string, JsonObject>>;
    const { propertyName, mapping } = (BuiltInStep ?? {})['discriminator'] as unknown as {
      readonly propertyName: string;
      readonly mapping: Readonly<Record<string, string>>;
    };
    expect(propertyName).to.equal('uses');
    expect(Object.keys(mapping)).to.have.members(
      registry
        .of('default')
        .list()
        .map(({ name }) => name),
    );
    expect(mapping['http.request']).to.equal('#/components/schemas/HttpRequestStep');
  });
});
