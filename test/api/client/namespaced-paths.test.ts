import { expect } from 'chai';
import { endpoints } from '../../../api/app.ts';
import { takesNamespace } from '../../../api/client/namespaced-paths.ts';
import { newId } from '../../../domain/ids.ts';

describe('the paths that a client narrows to its namespace', () => {
  it('are those with the query parameter namespace', () => {
    for (const { method, paths, query } of endpoints) {
      for (const path of paths) {
        const sent = path.replaceAll(/:\w+/g, () => newId(0));
        const takes = Object.hasOwn((query?.['properties'] ?? {}) as object, 'namespace');
        expect(takesNamespace(method.toUpperCase(), sent), `${method} ${path}`).to.equal(takes);
      }
    }
  });
});
