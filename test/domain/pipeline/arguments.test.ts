import { expect } from 'chai';
import { argumentCheck } from '../../../domain/pipeline/arguments.ts';

describe('the schema of a tool', () => {
  const text = { $async: true, type: 'string' };
  const schemas: readonly (readonly [where: string, schema: object])[] = [
    ['as a whole', { $async: true, type: 'object', required: ['name'] }],
    ['by a word', { $async: 'yes', type: 'object' }],
    ['within', { type: 'object', properties: { name: text } }],
    ['by a reference', { properties: { name: { $ref: '#/$defs/name' } }, $defs: { name: text } }],
    [
      'by a reference to its id',
      {
        properties: { name: { $ref: 'https://example.com/name' } },
        $defs: { name: { ...text, $id: 'https://example.com/name' } },
      },
    ],
  ];
  for (const [where, schema] of schemas) {
    it(`is refused if it is asynchronous ${where}`, () => {
      expect(() => argumentCheck(schema)).to.throw(/async/);
    });
  }

  it('may have $async false and members of that name', () => {
    const check = argumentCheck({ $async: false, properties: { $async: { type: 'string' } } });
    expect(check({ $async: 'x' })).to.deep.equal([]);
    expect(check({ $async: 1 })).to.deep.equal([
      { path: ['$async'], issue: 'must be string', keyword: 'type' },
    ]);
  });
});
