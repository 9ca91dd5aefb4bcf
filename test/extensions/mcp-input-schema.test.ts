import { ToolSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect } from 'chai';
import { inputSchemaOf } from '../../extensions/mcp_http/input-schema.ts';

describe('the parameters of a tool, in the Model Context Protocol', () => {
  const schemas: readonly (readonly [what: string, schema: object, written: object])[] = [
    ['without properties', {}, { type: 'object', properties: {} }],
    [
      'whose properties may have any value, or must be absent',
      { type: 'object', properties: { a: true, b: false, c: { type: 'string' } } },
      { type: 'object', properties: { a: {}, b: { not: {} }, c: { type: 'string' } } },
    ],
    ['that may be null', { type: ['object', 'null'] }, { type: 'object', properties: {} }],
    [
      'whose properties are not an object',
      { properties: [], required: true },
      { type: 'object', properties: {} },
    ],
    [
      'with other keywords',
      { required: ['a'], additionalProperties: false, allOf: [true] },
      { type: 'object', properties: {}, required: ['a'], additionalProperties: false, allOf: [{}] },
    ],
    [
      'with arrays of any items, at any depth',
      {
        properties: {
          a: { type: 'array' },
          b: { type: ['array', 'null'], items: true },
          c: { anyOf: [{ type: 'array', minItems: 1 }, { type: 'null' }] },
          d: { type: 'object', additionalProperties: { uniqueItems: true } },
          e: { type: 'array', items: [{ type: 'string' }, true], additionalItems: false },
          f: { type: 'object', patternProperties: { '^x': { items: { type: 'array' } } } },
          g: { enum: [{ type: 'array' }], default: { type: 'array' } },
        },
        $defs: { list: { type: 'array' } },
      },
      {
        type: 'object',
        properties: {
          a: { type: 'array', items: {} },
          b: { type: ['array', 'null'], items: {} },
          c: { anyOf: [{ type: 'array', minItems: 1, items: {} }, { type: 'null' }] },
          d: { type: 'object', additionalProperties: { uniqueItems: true, items: {} } },
          e: { type: 'array', prefixItems: [{ type: 'string' }, {}], items: { not: {} } },
          f: {
            type: 'object',
            patternProperties: { '^x': { items: { type: 'array', items: {} } } },
          },
          g: { enum: [{ type: 'array' }], default: { type: 'array' } },
        },
        $defs: { list: { type: 'array', items: {} } },
      },
    ],
    [
      'whose properties have the names of those of every object',
      JSON.parse('{"properties":{"__proto__":true,"constructor":true}}') as object,
      JSON.parse('{"type":"object","properties":{"__proto__":{},"constructor":{}}}') as object,
    ],
  ];
  for (const [what, schema, written] of schemas) {
    it(`with a schema ${what} are understood by clients`, () => {
      const inputSchema = inputSchemaOf(schema);
      expect(inputSchema).to.deep.equal(written);
      expect(ToolSchema.safeParse({ name: 'a.b', inputSchema }).success).to.equal(true);
    });
  }
});
