import { expect } from 'chai';
import {
  tooFewOpenFiles,
  maxOpenFiles,
  maxClientConnections,
  openFilesWarning,
} from '../../../app/starting/open-files.ts';

const limits = `Limit                     Soft Limit           Hard Limit           Units
Max processes             127500               127500               processes
Max open files            1024                 4096                 files
Max locked memory         8388608              8388608              bytes
`;

describe('the limit of open files', () => {
  it('is read from the system', () => {
    expect(maxOpenFiles(() => limits)).to.equal(1024);
    expect(maxOpenFiles(() => limits.replace('1024 ', 'unlimited '))).to.equal(Infinity);
    expect(maxOpenFiles(() => '')).to.equal(Infinity);
    expect(maxOpenFiles()).to.be.greaterThan(0);
  });

  it('is reported in one line with the remedy if it is too low', () => {
    expect(tooFewOpenFiles(256)).to.equal(null);
    expect(tooFewOpenFiles(Infinity)).to.equal(null);
    expect(tooFewOpenFiles(255)).to.match(
      /^this process can open 255 files .* 256.*ulimit -n.*[^\n]$/,
    );
  });

  it('leaves the remaining files to clients, and always a minimum', () => {
    expect(maxClientConnections(20_000, 64)).to.equal(20_000 - 192 - 64);
    expect(maxClientConnections(256, 64)).to.equal(32);
    expect(maxClientConnections(Infinity, 64)).to.equal(Infinity);
  });

  it("is reported if runs can take the clients' share", () => {
    expect(openFilesWarning(1024, 64)).to.equal(null);
    expect(openFilesWarning(Infinity, 10_000)).to.equal(null);
    expect(openFilesWarning(1024, 1000)).to.match(/ 1024 files .* 1000 runs .*ulimit -n/);
  });
});
