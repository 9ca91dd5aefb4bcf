import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { collectionOptions } from '../../../app/starting/young-collection.ts';

describe('collecting young objects', () => {
  it('is done without helpers where processors are few', () => {
    const alone = '--no-parallel-scavenge';
    expect(collectionOptions(1)).to.include(alone);
    expect(collectionOptions(2)).to.include(alone);
    expect(collectionOptions(3)).not.to.include(alone);
  });

  it('begins with all objects, however many processors there are', () => {
    for (const processors of [1, 2, 8]) {
      expect(collectionOptions(processors)).to.include('--no-allocation-site-pretenuring');
    }
  });

  it('goes by an option that this Node has', () => {
    const options = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });
    for (const option of collectionOptions(1)) {
      expect(options).to.include(`${option.replace('--no-', '--')} (`);
    }
  });
});
