import { ToolSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect } from 'chai';
import { inputSchemaOf } from '../../extensions/mcp_http/input-schema.ts';

describe('the parameters of a tool, in the Model Context Protocol', () => {
  const schemas: readonly (readonly [what: string, schema: object, written: object])[] = [
    ['of no property', {}, { type: 'object' }],
    [
      'whose properties may be anything, or must not be there',
      { type: 'object', properties: { a: true, b: false, c: { type: 'string' } } },
      { type: 'object', properties: { a: {}, b: { not: {} }, c: { type: 'string' } } },
    ],
    ['that may be null', { type: ['object', 'null'] }, { type: 'object' }],
    ['whose properties are no list', { properties: [], required: true }, { type: 'object' }],
    [
      'with other keywords',
      { required: ['a'], additionalProperties: false, allOf: [true] },
      { type: 'object', required: ['a'], additionalProperties: false, allOf: [true] },
    ],
    [
      'whose properties are named as what every object has',
      JSON.parse('{"properties":{"__proto__":true,"constructor":true}}') as object,
      JSON.parse('{"type":"object","properties":{"__proto__":{},"constructor":{}}}') as object,
    ],
  ];
  for (const [what, schema, written] of schemas) {
    it(`are understood by clients ${what}`, () => {
      const inputSchema = inputSchemaOf(schema);
      expect(inputSchema).to.deep.equal(written);
      expect(ToolSchema.safeParse({ name: 'a.b', inputSchema }).success).to.equal(true);
    });
  }
});
