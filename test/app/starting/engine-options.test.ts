import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { engineOptions } from '../../../app/starting/engine-options.ts';

describe('the options of V8', () => {
  it('collect garbage without helper threads and inline little with few processors', () => {
    for (const alone of ['--no-parallel-scavenge', '--max-inlined-bytecode-size-cumulative=100']) {
      expect(engineOptions(1)).to.include(alone);
      expect(engineOptions(2)).to.include(alone);
      expect(engineOptions(3)).not.to.include(alone);
    }
  });

  it('allocate all objects in the young generation with any number of processors', () => {
    for (const processors of [1, 2, 8]) {
      expect(engineOptions(processors)).to.include('--no-allocation-site-pretenuring');
    }
  });

  it('exist in this Node', () => {
    const options = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });
    for (const option of engineOptions(1)) {
      const name = option.replace('--no-', '--').replace(/=.*/, '');
      expect(options).to.include(`${name} (`);
    }
  });
});
