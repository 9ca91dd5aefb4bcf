import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { optionFor } from '../../../app/starting/idle-memory.ts';

describe('collections of an idle process', () => {
  it('are set by an option that this Node has', () => {
    const options = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });
    const [name] = optionFor(process.versions.v8).split('=');
    expect(options).to.include(`${String(name)} (`);
  });

  it("are set by the option's new name since Node 22", () => {
    expect(optionFor('11.3.244.8-node.38')).to.equal('--memory-reducer-single-gc');
    expect(optionFor('12.4.254.21-node.39')).to.equal('--memory-reducer-gc-count=1');
    expect(optionFor('13.6.233.17-node.48')).to.equal('--memory-reducer-gc-count=1');
  });
});
