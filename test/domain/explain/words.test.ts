import { expect } from 'chai';
import { excerpt } from '../../../domain/explain/words.ts';

describe('an excerpt of a text', () => {
  it('is its first line, cut behind a whole character', () => {
    expect(excerpt('a\nb')).to.equal('a');
    expect(excerpt(`${'a'.repeat(199)}😀z`)).to.equal(`${'a'.repeat(199)}…`);
    expect(excerpt(`${'a'.repeat(198)}😀z`)).to.equal(`${'a'.repeat(198)}😀…`);
  });
});
