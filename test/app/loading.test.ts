import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { projectRoot } from '../support/project-root.ts';

/** The modules that a module loads with itself, without types and later imports. */
const loaded = /^(?:import|export)\s(?!type\b)(?:[^;'"]*?\sfrom\s)?'([^']+)';/gm;

/** Everything that is loaded with a module: files of the project, and names of packages. */
function loadedWith(entry: string): ReadonlySet<string> {
  const all = new Set([entry]);
  for (const file of all) {
    if (!file.endsWith('.ts')) continue;
    for (const [, module = ''] of readFileSync(join(projectRoot, file), 'utf8').matchAll(loaded)) {
      all.add(
        module.startsWith('.')
          ? relative(projectRoot, join(projectRoot, dirname(file), module))
          : module,
      );
    }
  }
  return all;
}

describe('svc, at its start', () => {
  it('loads no store, no schema and no server, which only some of its commands need', () => {
    const all = [...loadedWith('app/cli.ts')];
    expect(all).to.include.members(['app/cli/store/archive-commands.ts', 'commander']);
    const packages = all.filter((name) => !name.endsWith('.ts') && !name.startsWith('node:'));
    expect(packages.sort()).to.deep.equal(['commander', 'yaml']);
    // The files beside the adapters of `stores/` only use the file system.
    const adapters = /^(stores\/.*\/|projections\/|scheduler\/)/;
    expect(all.filter((name) => adapters.test(name))).to.deep.equal([]);
  });
});

describe('the service, at its start', () => {
  it('checks the limit of open files before it loads modules that need many', () => {
    const all = [...loadedWith('app/main.ts')];
    const starting = ['npm-shell', 'open-files', 'process-arguments'];
    const files = starting.map((name) => `app/starting/${name}.ts`);
    expect(all).to.have.members(['app/main.ts', ...files, 'node:fs']);
  });

  it('loads no drivers of optional stores, and no traces', () => {
    const all = [...loadedWith('app/service-process.ts')];
    expect(all).to.include.members(['scheduler/tools/http-request.ts', 'express']);
    for (const later of ['mongodb', '@eventstore/db-client', '@opentelemetry/sdk-trace']) {
      expect(all).not.to.include(later);
    }
  });
});
