import { expect } from 'chai';
import { argumentCheck } from '../../../domain/pipeline/arguments.ts';
import { createBuiltInTools } from '../../../scheduler/tools/built-in.ts';

describe('the built-in tools', () => {
  it('have valid schemas, which the start does not validate', async () => {
    const never = () => Promise.reject(new Error('no tool is called'));
    const actions = { publishEvent: never, runTask: never };
    const { registry, close } = createBuiltInTools({ actions, allowPrivate: false });
    await close();
    expect(registry.builtIn).to.have.length.greaterThan(5);
    // Copies, because the schemas themselves are compiled already.
    for (const { schema } of registry.builtIn) argumentCheck({ ...schema });
  });
});
