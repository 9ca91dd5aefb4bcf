import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { collectionOptions } from '../../../app/starting/young-collection.ts';

describe('collecting young objects', () => {
  it('is done without helpers where processors are few', () => {
    expect(collectionOptions(1)).to.deep.equal(['--no-parallel-scavenge']);
    expect(collectionOptions(2)).to.deep.equal(['--no-parallel-scavenge']);
    expect(collectionOptions(3)).to.deep.equal([]);
  });

  it('goes by an option that this Node has', () => {
    const options = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });
    for (const option of collectionOptions(1)) {
      expect(options).to.include(`${option.replace('--no-', '--')} (`);
    }
  });
});
