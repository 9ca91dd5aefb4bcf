import { expect } from 'chai';
import {
  checkedParams,
  defaultParamsIssues,
  MAX_PARAMS_BYTES,
  mergeParams,
  paramsSchemaIssue,
  requiredParams,
} from '../../../domain/pipeline/params.ts';
import { refused } from '../given.ts';

const limit = { type: 'integer', minimum: 1 };
const shop = { type: 'string' };

/** A task with a schema of `limit` and `shop`, of which `shop` is required. */
function task(params: object, more: object = {}) {
  const params_schema = {
    type: 'object',
    properties: { limit, shop },
    required: ['shop'],
    ...more,
  };
  return { payload: { params, pipeline: [] }, params_schema };
}

describe('the params of a run', () => {
  it("are the task's defaults, overridden by the given ones key by key", () => {
    const defaults = { limit: 10, shop: 'a', deep: { x: 1 } };
    expect(mergeParams(defaults, { limit: 5, deep: { y: 2 }, more: null })).to.deep.equal({
      limit: 5,
      shop: 'a',
      deep: { y: 2 },
      more: null,
    });
  });

  it('are the defaults themselves if none are given', () => {
    const defaults = { limit: 10 };
    expect(mergeParams(defaults, null)).to.equal(defaults);
  });

  it('may be any object without a schema', () => {
    const rules = { payload: { pipeline: [] } };
    expect(checkedParams(rules, { anything: [1, { goes: true }] })).to.deep.equal({
      anything: [1, { goes: true }],
    });
    expect(checkedParams({ ...rules, params_schema: null }, undefined)).to.equal(undefined);
  });

  it('are left out of the request if they override nothing', () => {
    expect(checkedParams({ payload: {} }, {})).to.equal(undefined);
  });

  it('are checked after the merge, so they may supply what the defaults lack', () => {
    expect(checkedParams(task({ limit: 3 }), { shop: 'b' })).to.deep.equal({ shop: 'b' });
    const missing = refused('INVALID', () => checkedParams(task({ limit: 3 }), { limit: 4 }));
    expect(missing.message).to.equal('params.shop: is required by params_schema');
    refused('INVALID', () => checkedParams(task({ limit: 3 }), undefined));
  });

  it('are rejected with the path of each issue', () => {
    const rules = task({ shop: 'a' }, { additionalProperties: false });
    const refusal = refused('INVALID', () => checkedParams(rules, { limit: 0, limt: 5, shop: 7 }));
    expect(refusal.details['issues']).to.deep.equal([
      { field: 'params.limt', issue: 'is not in params_schema' },
      { field: 'params.limit', issue: 'must be at least 1' },
      { field: 'params.shop', issue: 'must be string' },
    ]);
  });

  it('are rejected beyond their limit, with or without a schema', () => {
    const params = { text: 'x'.repeat(MAX_PARAMS_BYTES) };
    for (const rules of [{ payload: {} }, task({ shop: 'a' })]) {
      expect(refused('INVALID', () => checkedParams(rules, params)).message).to.match(
        /^params: must have at most 65536 bytes of JSON, got 655\d\d$/,
      );
    }
  });

  it('are rejected if their schema refers to itself without end', () => {
    const rules = { payload: {}, params_schema: { type: 'object', allOf: [{ $ref: '#' }] } };
    expect(refused('INVALID', () => checkedParams(rules, { a: 1 })).message).to.contain(
      'params_schema refers to itself without end',
    );
  });
});

describe('a schema of params', () => {
  const issueOf = (more: object) => paramsSchemaIssue({ type: 'object', ...more });

  it('may refer to its own parts', () => {
    const $defs = { shop };
    expect(issueOf({ properties: { a: { $ref: '#/$defs/shop' } }, $defs })).to.equal(null);
  });

  it('may not refer to another schema', () => {
    expect(issueOf({ properties: { a: { $ref: 'https://example.com/a.json' } } })).to.deep.equal({
      field: 'params_schema',
      issue:
        'cannot resolve the reference https://example.com/a.json; only references into the schema itself (#/…) are allowed',
    });
  });

  it('must be the schema of an object', () => {
    for (const schema of [{}, { type: 'array' }, { type: ['object', 'null'] }]) {
      expect(paramsSchemaIssue(schema)?.field).to.equal('params_schema.type');
    }
  });

  it('must be valid, or the issue has its path', () => {
    expect(issueOf({ properties: { a: { type: 'text' } } })).to.deep.equal({
      field: 'params_schema.properties.a.type',
      issue: 'must be equal to one of the allowed values',
    });
    expect(issueOf({ properties: { a: { pattern: '(' } } })?.issue).to.contain(
      'Unterminated group',
    );
    expect(issueOf({ $async: true })?.issue).to.contain('asynchronous');
  });
});

describe('the default params of a task', () => {
  it('may lack values that a run can be given', () => {
    expect(defaultParamsIssues(task({ limit: 3 }), true)).to.deep.equal([]);
    const either = { anyOf: [{ required: ['limit'] }, { required: ['shop'] }], required: [] };
    expect(defaultParamsIssues(task({}, either), true)).to.deep.equal([]);
  });

  it('must each satisfy the schema of their own property', () => {
    const issues = [{ field: 'payload.params.limit', issue: 'must be at least 1' }];
    expect(defaultParamsIssues(task({ limit: 0 }), true)).to.deep.equal(issues);
  });

  it('must satisfy the whole schema if no run can replace them', () => {
    expect(defaultParamsIssues(task({ limit: 3 }), false)).to.deep.equal([
      { field: 'payload.params.shop', issue: 'is required by params_schema' },
    ]);
    expect(defaultParamsIssues(task({ shop: 'a' }), false)).to.deep.equal([]);
  });

  it('name the keys that they lack', () => {
    expect(requiredParams(task({ limit: 3 }))).to.deep.equal(['shop']);
    expect(requiredParams(task({ shop: 'a' }))).to.deep.equal([]);
    expect(requiredParams({ payload: {} })).to.deep.equal([]);
  });
});
