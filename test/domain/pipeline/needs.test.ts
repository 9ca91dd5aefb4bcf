import { expect } from 'chai';
import { readPayload } from '../../../domain/pipeline/parse.ts';

describe('the needs of a pipeline', () => {
  const issuesOf = (...pipeline: readonly object[]): readonly string[] =>
    readPayload({ pipeline: pipeline.map((step) => ({ uses: 'echo', ...step })) }).issues.map(
      ({ field, issue }) => `${field}: ${issue}`,
    );

  it('may form any graph without circles', () => {
    const steps = [
      { id: 'd', needs: ['b', 'c'] },
      { id: 'b', needs: ['a'] },
      { id: 'c', needs: ['a'] },
      { id: 'a' },
    ];
    expect(issuesOf(...steps)).to.deep.equal([]);
  });

  it('must name steps that exist', () => {
    expect(issuesOf({ id: 'a', needs: ['b', 'c'] }, { id: 'b' })).to.deep.equal([
      'payload.pipeline.0.needs.1: there is no step c outside a group',
    ]);
  });

  it('are rejected in a circle, and name only the steps of the circle', () => {
    const steps = [
      { id: 'x', needs: ['a'] },
      { id: 'a', needs: ['b'] },
      { id: 'b', needs: ['a'] },
    ];
    expect(issuesOf(...steps)).to.deep.equal([
      'payload.pipeline.1.needs: the steps need each other in a circle: a needs b needs a',
    ]);
    expect(issuesOf({ id: 'a', needs: ['a'] })).to.deep.equal([
      'payload.pipeline.0.needs: the steps need each other in a circle: a needs a',
    ]);
  });

  it('belong to a group, not to its steps', () => {
    const { issues } = readPayload({
      pipeline: [
        { id: 'a', uses: 'echo' },
        { id: 'g', needs: ['a'], parallel: [{ id: 'c', uses: 'echo', needs: ['a'] }] },
        { id: 'd', uses: 'echo', needs: ['c'] },
      ],
    });
    expect(issues.map(({ field }) => field)).to.deep.equal([
      'payload.pipeline.1.parallel.0.needs',
      'payload.pipeline.2.needs.0',
    ]);
  });
});
